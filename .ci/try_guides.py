"""Can five tasks be done by what the pages say alone, by somebody who has nothing but a copy of the repository?

The package is installed into a new environment by the commands of the first page. Then the commands of each task run
in an empty folder, in processes of their own; what the page shows of their output must be printed.

Usage: PYTHONPATH=tests python .ci/try_guides.py
"""

import os
import shlex
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

from commands import Outcome
from guides import WIDTH, Step, blocks, faults, steps

ROOT = Path(__file__).parent.parent
TASKS = {  # neighbours in time should not compile the same kernels: the first does so, the second hardly
    "score a new model with error bars": steps("index.md"),
    "compare solvers on my problem": steps("how-to/solvers.md"),
    "a budgeted test by categories": steps("how-to/budget.md", 1, 3, 4, 5),
    "choose how many cases": steps("how-to/budget.md", 1, 2),
    "subset my leaderboard": steps("how-to/leaderboard.md"),
}


def copy_of_the_repository(folder: Path) -> None:
    """Copy what git knows, or would if it were added: nothing that was installed, built or compiled here."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():  # one that was removed and not yet committed is still listed
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def install(checkout: Path) -> Path:
    """Install as the first page says, with the Python that runs this; where the commands are then."""
    commands = blocks("index.md", "bash")[0].replace("python3", shlex.quote(sys.executable))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    # What nobody imports need not be compiled. For a switch that is called no-something, pip's "0" means yes.
    environment |= {"PIP_QUIET": "1", "PIP_NO_COMPILE": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    subprocess.run(["bash", "-ec", commands], cwd=checkout, env=environment, stdin=subprocess.DEVNULL, check=True)
    return checkout / ".venv/bin"


def run(step: Step, *, folder: Path, commands: Path, home: Path) -> Outcome:
    """Run a command as a reader does who has never run one before."""
    done = subprocess.run(
        ["bash", "-c", step.command],
        cwd=folder,
        env={"PATH": f"{commands}:{os.defpath}", "HOME": str(home), "LANG": "C.UTF-8", "COLUMNS": WIDTH},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=600,  # kernels may be compiled, and the machine may have other things to do
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


def follow(task: str, *, folder: Path, commands: Path, home: Path) -> list[str]:
    """Do a task in a new folder, up to the first command that does not do what its page says; what is wrong with it."""
    began = time.monotonic()
    folder.mkdir()
    for step in TASKS[task]:
        if found := faults(step, run(step, folder=folder, commands=commands, home=home)):
            return [f"{task}: {step.command}", *found]
    print(f"{task}: {len(TASKS[task])} commands, {time.monotonic() - began:.0f} s", flush=True)
    return []


def main() -> None:
    """Install once, and follow all tasks, two at a time."""
    with TemporaryDirectory() as place, ThreadPoolExecutor(max_workers=2) as pool:
        checkout, home = Path(place) / "checkout", Path(place) / "home"
        copy_of_the_repository(checkout)
        home.mkdir()
        began = time.monotonic()
        commands = install(checkout)
        print(f"installed as docs/index.md says, {time.monotonic() - began:.0f} s", flush=True)
        found = pool.map(lambda task: follow(task, folder=Path(place) / task, commands=commands, home=home), TASKS)
        if told := list(chain.from_iterable(found)):
            sys.exit("\n".join(told))


if __name__ == "__main__":
    main()
