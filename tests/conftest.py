"""Settings that all tests share."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from browsers import browser as browser
from commands import Outcome, Run
from hypothesis import HealthCheck, settings

from rposst_opt.__main__ import main

# Compiling the kernels makes the first example slow, so no example has a deadline.
settings.register_profile("rposst", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("rposst")


@pytest.fixture(autouse=True)
def same_backends_for_every_test() -> Iterator[None]:
    """Taking a backend out of the table and putting it back changes the table's order, and order decides `auto`."""
    from rposst_opt.backends import BACKENDS

    before = dict(BACKENDS)
    yield
    BACKENDS.clear()
    BACKENDS.update(before)


@pytest.fixture
def rposst(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command line within this process, in an empty folder, on a wide terminal without colours."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("FORCE_COLOR", raising=False)

    def run(*arguments: str) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["rposst", *arguments])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        code = ended.value.code
        assert code is None or isinstance(code, int)
        return Outcome(code or 0, printed.out, printed.err)

    return run
