"""The command line: ``rposst demo | sample | solve | validate | score | write-subset | report | verify | agree | ...``.

Results go to standard output, progress and messages to standard error. Exit codes: 0 done, 1 no test, 2 bad input.

Only this room prints. Heavy packages are imported inside the commands, so that help and version answer at once; their
names in annotations are for type checkers alone.
"""

import io
import os
import sys
from typing import Annotated

import typer

import rposst_opt
from rposst_opt.cli.comparing import agree, backends, calibrate, compare
from rposst_opt.cli.experiments import domain, reproduce
from rposst_opt.cli.handing_over import write_subset
from rposst_opt.cli.planning import budget, forms
from rposst_opt.cli.refereeing import referee
from rposst_opt.cli.reporting import explore, report
from rposst_opt.cli.sampling import sample
from rposst_opt.cli.solving import demo, export, score, solve
from rposst_opt.cli.terminal import warnings_as_notices
from rposst_opt.cli.validating import validate
from rposst_opt.cli.verifying import verify
from rposst_opt.errors import RposstError

app = typer.Typer(
    name="rposst",
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

# As help lists them: first what most people want, last what few do. Typer puts groups of commands after all others.
for command in (
    demo,
    sample,
    solve,
    validate,
    score,
    write_subset,
    budget,
    forms,
    report,
    explore,
    verify,
    agree,
    compare,
    referee,
    export,
    backends,
    calibrate,
    reproduce,
):
    app.command()(command)
app.add_typer(domain, name="domain")


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"rposst {rposst_opt.__version__}")
        raise typer.Exit()


@app.callback()
def rposst(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Choose a few test cases, with weights, whose score stays close to the full test's for the worst policies."""
    if context.invoked_subcommand is None:
        print(context.get_help())


def run() -> int:
    """Run the command line; whatever goes wrong with the input becomes one line and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal may not know every letter of a name
    try:
        with warnings_as_notices():
            code = app(standalone_mode=False)
        sys.stdout.flush()
    except RposstError as error:
        return _complain(str(error))
    except BrokenPipeError:
        # Whoever read our output has gone. The interpreter would complain about it once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        return _complain(f"the output cannot be written ({error.strerror}).")
    except Exception as error:
        # Typer's own errors about options and arguments; where their class lives differs between its versions.
        if not hasattr(error, "format_message"):
            raise
        return _complain(error.format_message())
    return code if isinstance(code, int) else 0


def _complain(message: str) -> int:
    print("rposst: " + " ".join(message.split()), file=sys.stderr)
    return 2
