"""Which rules do the options state? Costs and groups from a file, a budget, quotas, conflicts, limits to weights."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from rposst_opt.cli.commands import RULES
from rposst_opt.cli.reading import ReadingOptions, columns_of
from rposst_opt.cli.terminal import notice
from rposst_opt.errors import ProblemError


def _rule(*names: str, metavar: str | None = None, text: str) -> Any:
    return typer.Option(*names, metavar=metavar, help=text, rich_help_panel=RULES, show_default=False)


CaseFile = Annotated[
    Path | None,
    _rule(
        metavar="FILE.csv",
        text="What is known of test cases: a column `case`, and of `cost`, `group` (several with ; between them), "
        "`least_weight` and `most_weight` those that there are.",
    ),
]
Budget = Annotated[float | None, _rule(text="What all cases of a test may cost together, the required ones included.")]
UpTo = Annotated[bool, _rule("--up-to", text="Take --size as the most: fewer cases may be chosen.")]
AtLeast = Annotated[
    list[str] | None,
    _rule(metavar="GROUP=NUMBER", text="Cases that the test must have of a group; a number alone is for every group."),
]
AtMost = Annotated[
    list[str] | None,
    _rule(metavar="GROUP=NUMBER", text="Cases that it may have of a group; a number alone is for every group."),
]
Conflict = Annotated[
    list[str] | None, _rule(metavar="A,B", text="Cases of which the test may have one; repeat for more.")
]
Together = Annotated[list[str] | None, _rule(metavar="A,B", text="Cases of which it has all or none; repeat for more.")]
LeastWeight = Annotated[float | None, _rule(text="What every chosen case must weigh at least.")]
MostWeight = Annotated[float | None, _rule(text="What a case may weigh at most.")]


@dataclass(frozen=True, kw_only=True)
class RuleOptions(ReadingOptions):
    """What states rules about the choice; the fields are options."""

    cases: CaseFile = None
    budget: Budget = None
    up_to: UpTo = False
    at_least: AtLeast = None
    at_most: AtMost = None
    conflict: Conflict = None
    together: Together = None
    least_weight: LeastWeight = None
    most_weight: MostWeight = None


def rules_of(options: RuleOptions, case_names: Sequence[str]) -> dict[str, Any]:
    """The rules that the options state, as arguments of a problem."""
    from rposst_opt.files.case_files import read_cases

    rules: dict[str, Any] = {}
    if options.cases is not None:
        known = read_cases(options.cases, case_names)
        for note in known.notes:
            notice(note)
        rules |= known.given
    if options.budget is not None and "costs" not in rules:
        raise ProblemError("a budget goes with what test cases cost: give --cases with a column `cost`.")
    quotas = {"at_least": options.at_least, "at_most": options.at_most}
    for name, texts in quotas.items():
        if texts:
            rules[name] = _quotas(f"--{name.replace('_', '-')}", texts, rules.get("groups"))
    limits = {"least_weight": options.least_weight, "most_weight": options.most_weight}
    for name, limit in limits.items():
        if limit is not None and name in rules:
            option = f"--{name.replace('_', '-')}"
            raise ProblemError(
                f"{option} and the column `{name}` of {options.cases} exclude each other: give one of them."
            )
    sets = {"conflicts": ("--conflict", options.conflict), "together": ("--together", options.together)}
    named = {
        name: [[case.strip() for case in columns_of(option, text)] for text in texts]
        for name, (option, texts) in sets.items()
        if texts
    }
    settled = {"budget": options.budget, "size_is": "at most" if options.up_to else None, **limits}
    return rules | named | {name: value for name, value in settled.items() if value is not None}


def _quotas(option: str, texts: Sequence[str], groups: Mapping[str, Sequence[str]] | None) -> dict[str, int] | int:
    """A number for each group that is named; or one number for all."""
    if groups is None:
        raise ProblemError(f"{option} needs --cases with a column `group`: which groups each test case is in.")
    quotas: dict[str, int] = {}
    for text in texts:
        group, sign, number = text.rpartition("=")
        if not number.strip().isdecimal():
            raise ProblemError(f"{option} must be GROUP=NUMBER, or a number for every group, got {text!r}.")
        if not sign:
            if len(texts) > 1:
                raise ProblemError(f"{option} {text} is for every group: give it alone, or GROUP=NUMBER for each.")
            return int(number)
        if group.strip() in quotas:
            raise ProblemError(f"{option} has the group {group.strip()!r} twice: give one number for it.")
        quotas[group.strip()] = int(number)
    return quotas
