"""Writing tables, and whatever else, whole or not at all."""

from pathlib import Path

import pandas as pd

from rposst_opt.text_files import check_can_write, write_atomically, write_with

__all__ = ["check_can_write", "write_atomically", "write_table", "write_with"]


def write_table(path: Path, table: pd.DataFrame) -> None:
    """Write a result matrix so that reading it back gives the same numbers."""
    write_atomically(path, table.to_csv(index_label="test_case", lineterminator="\n"))
