"""A validation as a folder of tables, written and read back."""

from pathlib import Path

from rposst_opt.errors import ProblemError
from rposst_opt.files.tables import read_columns
from rposst_opt.files.text import named
from rposst_opt.files.writing import write_atomically
from rposst_opt.unseen.procedures import check_known
from rposst_opt.unseen.splits import Kind
from rposst_opt.unseen.validation import Validation

SUMMARY, REPLICAS, ERRORS, TUNED = "summary.csv", "replicas.csv", "errors.csv", "tuned.csv"
READ_BACK = (ERRORS, TUNED)  # the others follow from these
_PLACE: dict[str, type[str] | type[int] | type[float]] = {"kind": str, "replica": int, "size": int, "selection": str}
_COLUMNS = {
    ERRORS: _PLACE | {"estimator": str, "policy": str, "target": int, "full": float, "estimate": float},
    TUNED: _PLACE | {"tuned_mean": float, "tuned_worst": float},
}


def write_validation(folder: Path, validation: Validation) -> None:
    """Write tidy tables, from which `read_validation` makes the same validation again."""
    folder.mkdir(parents=True, exist_ok=True)
    tables = {
        SUMMARY: validation.summary,
        REPLICAS: validation.by_replica,
        ERRORS: validation.errors,
        TUNED: validation.tuned,
    }
    for name, table in tables.items():
        write_atomically(folder / name, table.to_csv(index=False))


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
