"""Checking a proof: ``rposst verify``."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rposst_opt.cli.commands import CHECKS, OUTPUT
from rposst_opt.cli.options import ProblemOptions, read_problem, takes_problem
from rposst_opt.cli.terminal import console, notice, plain
from rposst_opt.cli.writing import AsJson, check_output, write_file
from rposst_opt.values.showing import counted

if TYPE_CHECKING:
    from rposst_opt.certificate import Certificate
    from rposst_opt.checking.claims import CheckedTest
    from rposst_opt.checking.verification import Verification
    from rposst_opt.problem import Problem

ProofFile = Annotated[
    Path, typer.Argument(metavar="PROOF.json", help="What `rposst solve --certificate` wrote for this problem.")
]
ClaimedTest = Annotated[
    Path | None,
    typer.Option(
        metavar="TEST.json",
        help="Check this test too: that its objective is what its file says, and how far it is from the proved bound.",
        rich_help_panel=CHECKS,
    ),
]
ExactArithmetic = Annotated[
    bool,
    typer.Option(
        "--exact-arithmetic",
        help="Work cuts out in rational numbers, so that nothing is rounded; it takes longer.",
        rich_help_panel=CHECKS,
    ),
]
PseudoBooleanFile = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "--export",
        metavar="PROOF.opb",
        help="Also write what is to be proved as a pseudo-Boolean problem, which has no solution if the proof holds.",
        rich_help_panel=OUTPUT,
    ),
]
MostExceptions = Annotated[
    int | None,
    typer.Option(
        min=0,
        help="How many sets a proof may name as exceptions, each of which is solved again; 1,000 unless given.",
        rich_help_panel=CHECKS,
    ),
]
NoEffect = Annotated[int | None, typer.Option(hidden=True)]


@takes_problem()
def verify(
    options: ProblemOptions,
    certificate: ProofFile,
    test: ClaimedTest = None,
    exact_arithmetic: ExactArithmetic = False,
    out: PseudoBooleanFile = None,
    most_exceptions: MostExceptions = None,
    samples: NoEffect = None,
    seed: NoEffect = None,
    as_json: AsJson = False,
) -> None:
    """Check a proof of a lower bound, without any solver; exit 1 if it does not hold."""
    from rposst_opt.checking.claims import check_claims
    from rposst_opt.checking.verification import MOST_EXCEPTIONS, verify_certificate
    from rposst_opt.files.records import as_json as to_json
    from rposst_opt.files.records import read_certificate, read_claims

    if out is not None:
        check_output(out, [*options.files, certificate, *([] if test is None else [test])])
    if samples is not None or seed is not None:
        notice("--samples and --seed have no effect: all sets of test cases are accounted for.")
    stated = read_problem(options)
    problem = replace(stated.problem, scale=stated.scale)
    proof = read_certificate(certificate, problem)
    claims = None if test is None else read_claims(test, problem)
    if proof.problem_sha256 is None:
        notice(f"{certificate} does not say which problem it is about, so that this could not be checked.")
    if out is not None:
        _write_opb(out, problem, proof, exact_arithmetic=exact_arithmetic)
    most = MOST_EXCEPTIONS if most_exceptions is None else most_exceptions
    outcome = verify_certificate(problem, proof, exact_arithmetic=exact_arithmetic, most_exceptions=most)
    checked = None if claims is None else check_claims(problem, claims, outcome)
    if as_json:
        print(to_json(_record(proof, outcome, checked, exact_arithmetic=exact_arithmetic)))
    else:
        console().print(plain(_sentence(proof, outcome, exact_arithmetic=exact_arithmetic)))
        if checked is not None:
            console().print(plain(f"{test}: {_sentence_of_test(checked)}"))
    if not outcome.holds or (checked is not None and checked.reason is not None):
        raise typer.Exit(1)


def _write_opb(path: Path, problem: "Problem", proof: "Certificate", *, exact_arithmetic: bool) -> None:
    """Write the pseudo-Boolean problem, or say why there is none."""
    from rposst_opt.checking.verification import Refused, hitting_problem
    from rposst_opt.files.opb import as_opb

    try:
        write_file(path, as_opb(hitting_problem(problem, proof, exact_arithmetic=exact_arithmetic)))
    except Refused as refusal:
        notice(f"{path} was not written: {refusal}.")


def _record(
    proof: "Certificate", outcome: "Verification", checked: "CheckedTest | None", *, exact_arithmetic: bool
) -> dict[str, Any]:
    """What was found out, as one JSON object."""
    from rposst_opt.files.records import finite

    of_test = {} if checked is None else {"objective": finite(checked.objective), "gap": finite(checked.gap)}
    reason = outcome.reason or (None if checked is None else checked.reason)
    return {
        "format": "rposst-verification/1",
        "holds": reason is None,
        "reason": reason,
        "bound": finite(outcome.bound),
        **of_test,
        "claimed_bound": proof.bound,
        "problem_sha256": proof.problem_sha256,
        "exact_arithmetic": exact_arithmetic,
        "n_cuts": len(proof.cuts),
        "n_exceptions": len(proof.exceptions),
        "n_checked": outcome.n_checked,
        "n_tuples": outcome.n_tuples,
        "n_nodes": outcome.n_nodes,
    }


def _sentence(proof: "Certificate", outcome: "Verification", *, exact_arithmetic: bool) -> str:
    """What a proof proves, for people."""
    if not outcome.holds:
        return f"The proof does not hold: {outcome.reason}."
    bound, claimed = (repr(each) if exact_arithmetic else f"{each:.9g}" for each in (outcome.bound, proof.bound))
    how = ", to the last digit" if exact_arithmetic else ""
    named = counted(len(proof.exceptions), "named set")
    besides = f", and but for {named} none has one below {claimed}" if proof.exceptions else ""
    again = f", {named} solved again" if proof.exceptions else ""
    return (
        f"The proof holds{how}: no test has an objective below {bound}{besides}. "
        f"{counted(len(proof.cuts), 'cut')} checked{again}, and all {outcome.n_tuples:,} sets of test cases are "
        "accounted for."
    )


def _sentence_of_test(checked: "CheckedTest") -> str:
    """What is known of a test beside a proof, for people."""
    if checked.reason is not None:
        return f"this test is not what is proved: {checked.reason}."
    if checked.bound == -float("inf"):
        return f"its objective is {checked.objective:.9g}, and how far that is from the best is not proved."
    return f"its objective is {checked.objective:.9g}, which is within {checked.gap:.3g} of the best possible."
