"""Take pictures of a report and of an explorer: ``PYTHONPATH=tests python docs/make_screenshot.py``.

It needs the browser that the tests use. The examples are small enough that every solver can finish.
"""

import tempfile
from pathlib import Path

import numpy as np
from browsers import open_browser

import rposst_opt as ro
from rposst_opt.experiments.domains import racing_arrows
from rposst_opt.reports.pages.explorer import game_values
from rposst_opt.reports.pages.explorer_page import explorer_page
from rposst_opt.reports.pages.report import gather
from rposst_opt.reports.pages.report_page import report_page

REPORT, EXPLORER = (Path(__file__).with_name(f"{name}.png") for name in ("report", "explorer"))
WIDTH, REPORT_HEIGHT, EXPLORER_HEIGHT = 1400, 1400, 1460


def a_report() -> str:
    """The report of a small race."""
    betas = (0, 1, 2, 4)
    tuning = racing_arrows(24, np.random.default_rng(7)).iloc[:, :18]
    problem = ro.Problem(results=tuning, size=3, measure=ro.CVaR(0.01), targets=ro.softmax_targets(tuning, betas))
    purpose = ro.Purpose(measure=problem.measure, betas=betas, is_rescaled=False)
    made_of = (tuning.to_numpy(), purpose)
    names = [f"beta {beta}" for beta in betas]
    report = gather(problem, target_names=names, made_of=made_of, agree_seconds=60, time_limit_seconds=None)
    assert report is not None
    command = "rposst report arrows.csv --size 3 --betas 0,1,2,4 --no-rescale --out report.html"
    return report_page(report, title="A small test for Racing Arrows", command=command)


def an_explorer() -> str:
    """The explorer on the losses of a test for the sample table."""
    problem = ro.Problem.from_results(ro.sample_results(), size=4, measure=ro.KOfN(2, 6))
    solution = ro.solve(problem)
    title, command = (
        "The k-of-N objective, by hand",
        "rposst explore results.csv --size 4 --k 2 --n 6 --out explore.html",
    )
    values = game_values(problem, solution)
    return explorer_page(problem, solution, problem.target_names, values, title=title, command=command)


def main() -> None:
    """Write the pages, open them, and take the pictures."""
    pages = ((a_report, REPORT, REPORT_HEIGHT), (an_explorer, EXPLORER, EXPLORER_HEIGHT))
    with tempfile.TemporaryDirectory() as folder, open_browser(Path(folder) / "profile") as browser:
        for make, picture, height in pages:
            page = Path(folder) / "page.html"
            page.write_text(make(), "utf-8")
            browser.open(page, width=WIDTH, height=height)
            browser.screenshot(picture)


if __name__ == "__main__":
    main()
