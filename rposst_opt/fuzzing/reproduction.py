"""A contradiction as a folder that can be sent to a solver's developers: table, model, scripts, and what is true."""

import platform
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import pandas as pd

from rposst_opt import __version__
from rposst_opt.backends import solve
from rposst_opt.checking.verification import verify_certificate
from rposst_opt.contract import Backend
from rposst_opt.fuzzing.scripts import Script, Truth, model_files, script_for
from rposst_opt.problem import Problem
from rposst_opt.referee.findings import Agreement, Finding

SCRIPT, WITH_THE_PACKAGE, RESULTS = "reproduce.py", "agree.py", "results.csv"
SCRIPT_SECONDS = 60.0  # that a script may take
PROOF_SECONDS = 10.0  # that the proof of the optimum may take


@dataclass(frozen=True, kw_only=True)
class Contradicted:
    """A solver that contradicts the facts, or crashes, and the smallest problem on which it does.

    Attributes
    ----------
    family, seed
        What the problem was drawn from.
    drawn : Problem
        As it was drawn.
    backend : Backend
        Who contradicts, by the name of `name`.
    is_in_the_table : bool
        Whether that name is all that it takes to make it.
    finding : Finding
        What it says of the small problem.
    agreement : Agreement
        What all say who were asked about it.
    """

    family: str
    seed: int
    drawn: Problem
    backend: Backend
    name: str
    is_in_the_table: bool
    finding: Finding
    agreement: Agreement

    @property
    def problem(self) -> Problem:
        """The small problem."""
        return self.agreement.problem


def folder_of(found: Contradicted) -> dict[str, str]:
    """The files of the folder, by their names."""
    files = {RESULTS: _table(found.problem), "targets.csv": _targets(found.problem)}
    files["probabilities.csv"] = _probabilities(found.problem)
    files |= model_files(found.problem)
    script = _script(found)
    ran = ""
    if script is not None:
        files |= {SCRIPT: script.text, **script.files}
        ran = run_script(files, script.arguments)
    if found.is_in_the_table:
        files[WITH_THE_PACKAGE] = with_the_package(found)
    return files | {"README.md": _readme(found, files, script, ran)}


# The table, as it can be read back without losing a bit


def _table(problem: Problem) -> str:
    return _csv(pd.DataFrame(problem.results, index=problem.case_names, columns=problem.policy_names), "test_case")


def _targets(problem: Problem) -> str:
    return _csv(pd.DataFrame(problem.targets, index=problem.target_names, columns=problem.case_names), "target")


def _probabilities(problem: Problem) -> str:
    table = pd.DataFrame(problem.probabilities, index=problem.policy_names, columns=problem.target_names)
    return _csv(table, "policy")


def _csv(table: pd.DataFrame, label: str) -> str:
    text: str = table.to_csv(index_label=label, lineterminator="\n")
    return text


# Scripts


def _script(found: Contradicted) -> Script | None:
    problem, best = found.problem, found.agreement.best
    capabilities = found.finding.capabilities
    if best is None or best.solution is None or best.solution.test is None or capabilities is None:
        return None
    truth = Truth(
        reached=best.objective / problem.unit,
        allowed=problem.allowance(capabilities.tolerance) / problem.unit,
        cases=tuple(case for case in best.solution.test.cases if case not in problem.required_cases),
    )
    title = f"{found.name} ({found.finding.version or 'no version'}) on {_size_words(problem)}: {_first(found)}."
    return script_for(found.backend, problem, truth, title)


def _first(found: Contradicted) -> str:
    contradiction = found.finding.contradiction
    return found.finding.verdict.words if contradiction is None else contradiction.value


def run_script(files: dict[str, str], arguments: tuple[str, ...]) -> str:
    """What the script prints here, and how it ends."""
    with tempfile.TemporaryDirectory(prefix="rposst-") as folder:
        for name, text in files.items():
            (Path(folder) / name).write_text(text)
        command = [sys.executable, "-W", "ignore", SCRIPT, *arguments]
        try:
            done = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, timeout=SCRIPT_SECONDS, stdin=subprocess.DEVNULL
            )
        except subprocess.TimeoutExpired:
            return f"(it did not end within {SCRIPT_SECONDS:g} s)\n"
    return f"{done.stdout}{done.stderr[-2000:]}(it ended with code {done.returncode})\n"


def with_the_package(found: Contradicted) -> str:
    """A script that states the problem and asks the solver again, with this package."""
    problem = found.problem
    stated = f"{problem.measure!r}, {problem.loss!r}"
    names = ", ".join(sorted(set(re.findall(r"\b([A-Z]\w*)\(", stated))))
    return f'''"""The same by rposst-opt {__version__}: it ends with code 1 if solver and exact search disagree."""

import numpy as np
import pandas as pd

import rposst_opt as ro
from rposst_opt import {names}


def read(name):
    return pd.read_csv(name, index_col=0, dtype=str).astype(float)


def shares(name):
    values = np.ascontiguousarray(read(name))
    values.setflags(write=False)  # so that they are taken as they are, and not scaled again
    return values


problem = ro.Problem(
    results=read("results.csv"),
    size={problem.size},
    measure={problem.measure!r},
    loss={problem.loss!r},
    targets=shares("targets.csv"),
    probabilities=shares("probabilities.csv"),
    required_cases={[problem.case_names[case] for case in problem.required_cases]!r},
    forbidden_cases={[problem.case_names[case] for case in problem.forbidden_cases]!r},
    offset={problem.offset!r},
)
report = ro.agree(problem, {list(dict.fromkeys(["exact", found.name]))!r})
for finding in report.findings:
    print(f"{{finding.backend}} {{finding.objective!r}}: {{finding.verdict.words}} {{finding.reason}}")
raise SystemExit(not report.agreed)
'''


# What is claimed, and what is true


def _size_words(problem: Problem) -> str:
    return (
        f"{problem.size} of {problem.n_cases} test cases, {problem.n_policies} policies, "
        f"{len(problem.targets)} target{'s' if len(problem.targets) > 1 else ''}"
    )


def _readme(found: Contradicted, files: dict[str, str], script: Script | None, ran: str) -> str:
    problem, finding = found.problem, found.finding
    return "\n".join(
        [
            f"# {found.name}: {_first(found)}",
            "",
            f"{_size_words(problem)[0].upper()}{_size_words(problem)[1:]}; {problem.measure.words}; loss "
            f"`{problem.loss.label}`{'; with an offset' if problem.offset else ''}.",
            f"Drawn as `{found.family}` with the seed {found.seed} ({_size_words(found.drawn)}), and made smaller for "
            "as long as the same solver did the same.",
            "",
            "## What it says",
            "",
            f"{found.name} {finding.verdict.words}: {finding.reason}",
            *_claims(finding),
            "",
            "## What is true",
            "",
            *_truths(found),
            "",
            "## Files",
            "",
            *_files_words(files, script, ran),
            "",
            "## Versions",
            "",
            *(f"- {line}" for line in _versions(found)),
            "",
        ]
    )


def _claims(finding: Finding) -> list[str]:
    candidate = finding.candidate
    if candidate is None:
        return []
    claimed = candidate.claimed_objective
    test = None if candidate.test is None else dict(zip(candidate.test.cases, candidate.test.weights, strict=True))
    return [
        "",
        f"- its own value of its test: {'none' if claimed is None else repr(float(claimed))}",
        f"- its lower bound: {float(candidate.lower_bound)!r}",
        "- its test, weights by position: "
        + ("none" if test is None else ", ".join(f"{case}: {float(weight)!r}" for case, weight in test.items())),
        f"- the objective of that test, by `Problem.objective`: {float(finding.objective)!r}",
    ]


def _truths(found: Contradicted) -> list[str]:
    best = found.agreement.best
    lines = []
    if best is not None and best.solution is not None and best.solution.test is not None:
        test = best.solution.test
        weights = ", ".join(
            f"{name}: {float(weight)!r}" for name, weight in zip(test.case_names, test.weights, strict=True)
        )
        lines.append(f"- {best.backend}'s test reaches {float(best.objective)!r}, by `Problem.objective`: {weights}")
    return [*lines, f"- {_proved(found.problem)}"]


def _proved(problem: Problem) -> str:
    """What the exact search proves, checked in rational numbers."""
    solution = solve(problem, "exact", time_limit_seconds=PROOF_SECONDS, certificate=True)
    if solution.certificate is None:
        return f"the exact search proved no more than {solution.lower_bound!r} in {PROOF_SECONDS:g} s"
    checked = verify_certificate(problem, solution.certificate, exact_arithmetic=True)
    if not checked.holds:
        return f"the exact search says that no test is below {solution.lower_bound!r}, without a proof that was checked"
    return f"no test is below {float(checked.bound)!r}: a certificate was checked in rational numbers"


def _files_words(files: dict[str, str], script: Script | None, ran: str) -> list[str]:
    words = [f"- `{RESULTS}`, `targets.csv`, `probabilities.csv`: the problem, to the last digit"]
    if "model.mps" in files:
        words.append(
            "- `model.mps`, `model.lp`: its mixed-integer program, in units of the largest loss; y_3 says whether the "
            "test case at position 3 is chosen, w_3 is its weight. Numbers in it have 13 digits."
        )
    if WITH_THE_PACKAGE in files:
        words.append(f"- `{WITH_THE_PACKAGE}`: the same by rposst-opt")
    if script is None:
        return [*words, "", "There is no script for this solver that does without rposst-opt."]
    arguments = "".join(f" {Path(argument).name}" for argument in script.arguments)
    return [
        *words,
        f"- `{SCRIPT}`: needs {script.needs}; `python {SCRIPT}{arguments}` printed here",
        "",
        *(f"      {line}" for line in ran.splitlines()),
    ]


def _versions(found: Contradicted) -> list[str]:
    packages = ["numpy", "scipy", *([] if found.finding.capabilities is None else found.finding.capabilities.requires)]
    known = [f"{package} {version_of(package)}" for package in dict.fromkeys(packages)]
    system = f"{platform.system()} {platform.machine()}"
    return [f"rposst-opt {__version__}", f"Python {platform.python_version()}, {system}", *known]


def version_of(package: str) -> str:
    """Of a package that is installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "(its version is not known)"
