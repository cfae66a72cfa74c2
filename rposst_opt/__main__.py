"""Where the command ``rposst`` begins: an interrupt is met with one line, also while Python is still importing."""

import sys

INTERRUPTED = 130


def main() -> None:
    """Run the command line."""
    try:
        from rposst_opt.cli import run

        code = run()
    except BaseException as error:
        if not stems_from_interrupt(error):
            raise
        code = INTERRUPTED
    if code == INTERRUPTED:  # typer turns an interrupt into this code and says nothing
        sys.stderr.write("rposst: interrupted.\n")
    sys.exit(code)


def stems_from_interrupt(error: BaseException | None) -> bool:
    """Whether this is an interrupt, or came of one: it may strike in the middle of a lock, which then complains."""
    while error is not None and not isinstance(error, KeyboardInterrupt | SystemExit):
        error = error.__cause__ or error.__context__
    return isinstance(error, KeyboardInterrupt)


if __name__ == "__main__":
    main()
