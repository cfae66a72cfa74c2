"""Where the command ``rposst`` begins: an interrupt is met with one line, also while Python is still importing."""

import sys


def main() -> None:
    """Run the command line."""
    try:
        from rposst_opt.cli import run

        code = run()
    except KeyboardInterrupt:
        sys.stderr.write("rposst: interrupted.\n")
        code = 130
    sys.exit(code)


if __name__ == "__main__":
    main()
