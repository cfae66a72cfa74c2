"""Are damaged tables read, or refused in one line? ``python tests/mutate_tables.py --count 10000`` tries many.

Every mutant is made by its seed alone: bytes flipped, cells swapped, rows or columns cut, encodings mixed. It must be
read, or refused by a `ProblemError` of one line; and where it is read the other way round than the table that it was
made of, a note must say that nothing in the names told.
"""

import argparse
import gzip
import io
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

import rposst_opt as ro

CASES, POLICIES = [f"item-{number:03}" for number in range(7)], ["dqn", "ppo, tuned", "größer", "a2c", "rainbow"]
RESULTS = pd.DataFrame(np.random.default_rng(5).normal(size=(7, 5)).round(4), index=CASES, columns=POLICIES)
NOT_TOLD = "as nothing in the names tells otherwise"


def sources() -> dict[str, bytes]:
    """The tables that are damaged, by the names of their files; all of them have the same results."""
    wide = RESULTS.rename_axis("test case").reset_index()
    turned = RESULTS.T.rename_axis("model").reset_index()
    long = wide.melt(id_vars="test case", var_name="policy", value_name="score")
    texts = {"wide": wide, "turned": turned, "long": long}
    found = {f"{name}.csv": frame.to_csv(index=False).encode() for name, frame in texts.items()}
    found |= {f"{name}.tsv": frame.to_csv(index=False, sep="\t").encode() for name, frame in texts.items()}
    found |= {f"{name}.jsonl": frame.to_json(orient="records", lines=True).encode() for name, frame in texts.items()}
    found["packed.csv.gz"] = gzip.compress(found["turned.csv"], mtime=0)
    parquet, feather = io.BytesIO(), io.BytesIO()
    wide.to_parquet(parquet)
    wide.to_feather(feather)
    return found | {"wide.parquet": parquet.getvalue(), "wide.feather": feather.getvalue()}


def flip_bytes(data: bytes, rng: np.random.Generator) -> bytes:
    changed = bytearray(data)
    for place in rng.integers(len(data), size=rng.integers(1, 4)):
        changed[place] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def swap_cells(data: bytes, rng: np.random.Generator) -> bytes:
    separator = b"\t" if b"\t" in data else b","
    rows = [row.split(separator) for row in data.split(b"\n")]
    places = [(row, cell) for row, cells in enumerate(rows) for cell in range(len(cells))]
    (one, its), (other, theirs) = (places[place] for place in rng.integers(len(places), size=2))
    rows[one][its], rows[other][theirs] = rows[other][theirs], rows[one][its]
    return b"\n".join(separator.join(row) for row in rows)


def cut_a_row(data: bytes, rng: np.random.Generator) -> bytes:
    rows = data.split(b"\n")
    del rows[int(rng.integers(len(rows)))]
    return b"\n".join(rows)


def cut_a_column(data: bytes, rng: np.random.Generator) -> bytes:
    separator = b"\t" if b"\t" in data else b","
    rows = [row.split(separator) for row in data.split(b"\n")]
    place = int(rng.integers(max(map(len, rows))))
    return b"\n".join(separator.join(row[:place] + row[place + 1 :]) for row in rows)


def cut_the_end(data: bytes, rng: np.random.Generator) -> bytes:
    return data[: int(rng.integers(len(data)))]


def repeat_a_row(data: bytes, rng: np.random.Generator) -> bytes:
    rows = data.split(b"\n")
    return b"\n".join([*rows, rows[int(rng.integers(len(rows)))]])


def mix_encodings(data: bytes, rng: np.random.Generator) -> bytes:
    half = int(rng.integers(len(data)))
    encoding = ["latin-1", "utf-16", "utf-8-sig", "cp1252"][int(rng.integers(4))]
    return data[:half] + data[half:].decode("utf-8", errors="replace").encode(encoding, errors="replace")


def insert_noise(data: bytes, rng: np.random.Generator) -> bytes:
    half = int(rng.integers(len(data)))
    return data[:half] + rng.bytes(int(rng.integers(1, 6))) + data[half:]


MUTATIONS: tuple[Callable[[bytes, np.random.Generator], bytes], ...] = (
    flip_bytes,
    swap_cells,
    cut_a_row,
    cut_a_column,
    cut_the_end,
    repeat_a_row,
    mix_encodings,
    insert_noise,
)


def mutant(seed: int, tables: dict[str, bytes]) -> tuple[str, bytes]:
    """The name and the content of a damaged file: one of the tables, once or twice damaged."""
    rng = np.random.default_rng(seed)
    name = list(tables)[int(rng.integers(len(tables)))]
    data = tables[name]
    for _ in range(int(rng.integers(1, 3))):
        if data:
            data = MUTATIONS[int(rng.integers(len(MUTATIONS)))](data, rng)
    return name, data


def outcome(path: Path) -> str:
    """What comes of a file: read, read and turned with a word about it, or refused; anything else is an error here."""
    try:
        table = ro.read_results(path)
    except ro.ProblemError as error:
        message = str(error)
        assert len(message.splitlines()) == 1, message
        return "refused"
    assert np.isfinite(table.results.to_numpy()).all()
    if not is_turned(table.results):
        return "read"
    notes = " ".join(table.notes)
    assert NOT_TOLD in notes, f"turned without a word: {notes}"
    return "turned, and said so"


def is_turned(results: pd.DataFrame) -> bool:
    """Whether policies stand where test cases should."""
    right = len(set(results.index) & set(CASES)) + len(set(results.columns) & set(POLICIES))
    wrong = len(set(results.index) & set(POLICIES)) + len(set(results.columns) & set(CASES))
    return wrong > right


def run(seeds: range) -> Counter[str]:
    """How many mutants come to what."""
    found: Counter[str] = Counter()
    tables = sources()
    with tempfile.TemporaryDirectory() as folder:
        for seed in seeds:
            name, data = mutant(seed, tables)
            path = Path(folder) / name
            path.write_bytes(data)
            try:
                found[outcome(path)] += 1
            except BaseException as error:
                error.add_note(f"seed {seed}, a mutant of {name}: {data!r}")
                raise
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    counts = run(range(arguments.seed, arguments.seed + arguments.count))
    sys.stdout.write("".join(f"{what}: {count:,}\n" for what, count in sorted(counts.items())))
