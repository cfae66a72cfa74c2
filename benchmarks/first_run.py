"""How long does a stranger wait? From an empty folder to the demo, and from an import to the first answer.

Give revisions to compare them in one run: ``python -m benchmarks.first_run v1.0 HEAD``.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
FIRST_ANSWER = """
import time
started = time.perf_counter()
import numpy as np
import rposst_opt as ro
from rposst_opt.experiments.domains import racing_arrows
table = racing_arrows({n}, np.random.default_rng(7))
problem = ro.Problem(results=table, size=3, targets=ro.softmax_targets(table))
ro.solve(problem)
print(time.perf_counter() - started)
"""
SIZES = (50, 500)  # cases: one that is done in a moment, and one that calls for compiled kernels


def main(revisions: list[str]) -> None:
    """Print a line for each revision and each thing that is waited for."""
    for revision in revisions:
        with tempfile.TemporaryDirectory() as folder:
            checkout = Path(folder) / "checkout"
            subprocess.run(["git", "clone", "--quiet", str(REPOSITORY), str(checkout)], check=True)
            subprocess.run(["git", "checkout", "--quiet", revision], cwd=checkout, check=True)
            started = time.perf_counter()
            subprocess.run(["make", "demo"], cwd=checkout, check=True, stdout=subprocess.DEVNULL)
            tell(revision, "make demo from an empty folder", time.perf_counter() - started)
            for n in SIZES:
                cache = Path(folder) / f"kernels-{n}"
                tell(revision, f"import to first answer, n = {n}, nothing compiled", first_answer(checkout, cache, n))
                # The second run may compile what the first one did without.
                tell(revision, f"import to first answer, n = {n}, second process", first_answer(checkout, cache, n))


def first_answer(checkout: Path, cache: Path, n: int) -> float:
    """Seconds from the import to the answer, in a process of its own."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(checkout)}
    command = [str(checkout / ".venv/bin/python"), "-c", FIRST_ANSWER.format(n=n)]
    done = subprocess.run(command, cwd=checkout, env=environment, check=True, capture_output=True, text=True)
    return float(done.stdout)


def tell(revision: str, what: str, seconds: float) -> None:
    """A line for people."""
    print(f"{revision:12} {what:55} {seconds:7.1f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or ["HEAD"])
