"""What people are shown: analyses, plots, sentences, and pages for the browser."""

from rposst_opt.errors import check_installed


def check_can_draw() -> None:
    """Refuse to go on without what pictures need."""
    check_installed("pictures need", ["matplotlib"], extra="figures")
