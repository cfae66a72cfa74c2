"""Of which run are the tables in a folder? What was asked is written beside them, so that only the same run goes on."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rposst_opt import __version__
from rposst_opt.errors import ProblemError
from rposst_opt.text_files import as_json, named, read_record, write_atomically
from rposst_opt.values.digests import is_digest

SOURCE = "source.json"
WAY_OUT = "it is not written over: name another folder, or give --force."


def write_source(folder: Path, written_format: str, asked: Mapping[str, Any]) -> None:
    """Write what was asked of the run whose tables are in the folder: its ``options``, and what else there is."""
    record = {"format": written_format, "package_version": __version__, **asked}
    write_atomically(folder / SOURCE, as_json(record) + "\n")


def check_same_run(folder: Path, tables: Iterable[str], written_format: str, asked: Mapping[str, Any]) -> None:
    """Refuse a folder with tables that are not of a run of which the same was asked.

    Parameters
    ----------
    folder : Path
        It need not be there.
    tables : iterable of str
        The files of the folder that the run is going to write, besides `SOURCE`.
    written_format, asked
        As for `write_source`.
    """
    present = [name for name in tables if (folder / name).exists()]
    if not (folder / SOURCE).exists():
        if present:
            raise ProblemError(f"{named(folder / present[0])}: nothing says of which run this file is, and {WAY_OUT}")
        return
    try:
        found = read_record(folder / SOURCE, written_format, "source of this command's tables")
    except ProblemError as error:
        raise ProblemError(f"{str(error).rstrip('.')}, and {WAY_OUT}") from None
    reason = _difference(found, json.loads(as_json(asked))) if present else None
    if reason is not None:
        raise ProblemError(f"{named(folder / present[0])}: {reason}, and {WAY_OUT}")


def _difference(found: Mapping[str, Any], asked: Mapping[str, Any]) -> str | None:
    """How the run that was written down differs from the one that is asked for; None if it is the same."""
    if not isinstance(found.get("options"), dict):
        return "this file is of an older version, which did not write down its options"
    before, now = found["options"], asked["options"]
    for name in [*now, *(name for name in before if name not in now)]:
        if before.get(name) != now.get(name):
            return f"this file is of a run with another `{name}`{_in_words(before.get(name), now.get(name))}"
    if any(found.get(name) != value for name, value in asked.items()):
        return "this file is of a run on another table"
    return None


def _in_words(before: object, now: object) -> str:
    """Both values, where they can be said in a few words."""
    if any(is_digest(value) or isinstance(value, dict) for value in (before, now)):
        return ""
    return f" ({_shown(before)} then, {_shown(now)} now)"


def _shown(value: object) -> str:
    if isinstance(value, list):
        return ",".join(str(each) for each in value)
    return "none" if value is None else str(value)
