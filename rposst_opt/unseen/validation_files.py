"""A validation as a folder of tables, written and read back."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rposst_opt.errors import ProblemError
from rposst_opt.files.run_folders import SOURCE, write_source
from rposst_opt.files.tables import read_columns
from rposst_opt.text_files import named, read_record, write_atomically
from rposst_opt.unseen.procedures import check_known
from rposst_opt.unseen.splits import Kind
from rposst_opt.unseen.validation import Validation
from rposst_opt.values.digests import is_digest

SOURCE_FORMAT = "rposst-validation-source/1"
SUMMARY, REPLICAS, ERRORS, TUNED = "summary.csv", "replicas.csv", "errors.csv", "tuned.csv"
TABLES = (SUMMARY, REPLICAS, ERRORS, TUNED)
READ_BACK = (ERRORS, TUNED)  # the others follow from these
_PLACE: dict[str, type[str] | type[int] | type[float]] = {"kind": str, "replica": int, "size": int, "selection": str}
_COLUMNS = {
    ERRORS: _PLACE | {"estimator": str, "policy": str, "target": int, "full": float, "estimate": float},
    TUNED: _PLACE | {"tuned_mean": float, "tuned_worst": float},
}


def write_validation(
    folder: Path,
    validation: Validation,
    table_sha256: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> None:
    """Write tidy tables, from which `read_validation` makes the same validation again, and of which run they are."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in TABLES:
        (folder / name).unlink(missing_ok=True)  # no table of another run may stand beside what says of which run it is
    write_source(folder, SOURCE_FORMAT, asked_of(table_sha256, options))
    tables = {
        SUMMARY: validation.summary,
        REPLICAS: validation.by_replica,
        ERRORS: validation.errors,
        TUNED: validation.tuned,
    }
    for name, table in tables.items():
        write_atomically(folder / name, table.to_csv(index=False))


def asked_of(table_sha256: str | None, options: Mapping[str, Any] | None) -> dict[str, Any]:
    """What tells a validation from others: the table's digest, and the options if they are known."""
    return {"table_sha256": table_sha256} | ({} if options is None else {"options": dict(options)})


def table_of_validation(folder: Path) -> str | None:
    """The digest of the table that a validation in a folder is of; None if nothing says so."""
    if not (folder / SOURCE).is_file():
        return None
    digest = read_record(folder / SOURCE, SOURCE_FORMAT, "validation's source").get("table_sha256")
    if digest is not None and not is_digest(digest):
        raise ProblemError(f'{named(folder / SOURCE)}: "table_sha256" must be 64 hexadecimal digits, got {digest!r}.')
    return digest


def check_validation_is_of(folder: Path, table_sha256: str) -> bool:
    """Refuse a validation of another table; False if nothing says which table it is of."""
    digest = table_of_validation(folder)
    if digest is not None and digest != table_sha256:
        raise ProblemError(
            f"{named(folder)}: these trials are of another table: give the table that they were made of, or run "
            "`rposst validate` on this one."
        )
    return digest is not None


def read_validation(folder: Path) -> Validation:
    """Read the validation that was written to a folder."""
    if not folder.is_dir():
        raise ProblemError(f"{named(folder)}: there is no such folder: `rposst validate --out` writes one.")
    for name in READ_BACK:
        if not (folder / name).is_file():
            raise ProblemError(
                f"{named(folder / name)}: there is no such file: run `rposst validate --out` with this folder again."
            )
    errors, tuned = (read_columns(folder / name, _COLUMNS[name]) for name in READ_BACK)
    if errors.empty:
        raise ProblemError(f"{named(folder / ERRORS)}: there is nothing below the header.")
    _check_names(folder / ERRORS, set(errors["kind"]), set(errors["selection"]), set(errors["estimator"]))
    key = list(_PLACE)
    if set(errors[key].itertuples(index=False, name=None)) != set(tuned[key].itertuples(index=False, name=None)):
        raise ProblemError(f"{named(folder)}: {ERRORS} and {TUNED} are not of the same trials: validate once more.")
    return Validation(errors, tuned)


def _check_names(path: Path, kinds: set[str], selections: set[str], estimators: set[str]) -> None:
    known = [kind.value for kind in Kind]
    strange = sorted(kinds.difference(known))
    if strange:
        raise ProblemError(f"{named(path)}: unknown kind {strange[0]!r}. Known: {', '.join(known)}.")
    try:
        check_known(sorted(selections), sorted(estimators))
    except ProblemError as error:
        raise ProblemError(f"{named(path)}: {error}") from None
