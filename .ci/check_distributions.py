"""Is everything in the wheel and in the source distribution that belongs there, and nothing else?

Usage: python .ci/check_distributions.py dist
"""

import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Collection
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = ("rposst_opt", "formulations")
# Files that no import would miss: without them the wheel is broken, or without types, and few would notice at once.
DATA = ("py.typed", "forecast.csv", "samples/results.csv", ".html", ".js", ".css")


def tracked() -> list[str]:
    """The files that git knows."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True)
    return listed.stdout.splitlines()


def faults(*, wheel: Collection[str], source: Collection[str], files: Collection[str]) -> list[str]:
    """What is wrong with the files in a wheel and in a source distribution of these files, if anything."""
    of_packages = [name for name in files if name.split("/")[0] in PACKAGES]
    found = [f"the wheel lacks {name}" for name in of_packages if name not in wheel]
    found += [f"the source distribution lacks {name}" for name in files if name not in source]
    found += [f"the wheel has no file that ends in {end}" for end in DATA if not any(n.endswith(end) for n in wheel)]
    found += [f"the wheel has {name}" for name in wheel if name not in of_packages and ".dist-info/" not in name]
    return found


def main(folder: Path) -> None:
    """Look into the only wheel and the only source distribution in a folder."""
    [wheel_path], [source_path] = folder.glob("*.whl"), folder.glob("*.tar.gz")
    with zipfile.ZipFile(wheel_path) as wheel_archive:
        wheel = wheel_archive.namelist()
    with tarfile.open(source_path) as source_archive:
        source = [name.split("/", 1)[1] for name in source_archive.getnames()]
    if found := faults(wheel=wheel, source=source, files=tracked()):
        sys.exit("\n".join(found))
    print(f"{wheel_path.name}: {len(wheel)} files, {source_path.name}: {len(source)} files; none is missing")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
