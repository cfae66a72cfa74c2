"""How long may a run take, by whom and where? The options that several commands share."""

from typing import Annotated

import typer

from rposst_opt.cli.commands import RUN

SECONDS_EACH = 60.0  # where several solvers, or searches for several tests, come one after the other

BackendName = Annotated[
    str, typer.Option(metavar="NAME", help="Which solver; `rposst backends` lists them.", rich_help_panel=RUN)
]
Backends = Annotated[
    str | None,
    typer.Option(metavar="A,B", help="Only these backends; all of them if not given.", rich_help_panel=RUN),
]
TimeLimit = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS",
        help="Stop then, with the best test so far; without a limit, when the best test is proved.",
        rich_help_panel=RUN,
    ),
]
Threads = Annotated[int, typer.Option(min=1, help="For each solver that can be told.", rich_help_panel=RUN)]
Jobs = Annotated[
    int | None,
    typer.Option(
        min=1, help="Processes on this machine; one per core unless given.", show_default=False, rich_help_panel=RUN
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Run on a Dask cluster: its scheduler's address.",
        show_default=False,
        rich_help_panel=RUN,
    ),
]
