"""Take the README's picture of a report: ``PYTHONPATH=tests python docs/make_screenshot.py``.

It needs the browser that the tests use. The example is small enough that every solver can finish.
"""

import tempfile
from pathlib import Path

import numpy as np
from browsers import open_browser

import rposst_opt as ro
from rposst_opt.experiments.domains import racing_arrows
from rposst_opt.reports.pages.report import gather
from rposst_opt.reports.pages.report_page import report_page

PICTURE = Path(__file__).with_name("report.png")
WIDTH, HEIGHT = 1400, 1400


def main() -> None:
    """Write the report, open it, and take the picture."""
    betas = (0, 1, 2, 4)
    tuning = racing_arrows(24, np.random.default_rng(7)).iloc[:, :18]
    problem = ro.Problem(results=tuning, size=3, measure=ro.CVaR(0.01), targets=ro.softmax_targets(tuning, betas))
    purpose = ro.Purpose(measure=problem.measure, betas=betas, is_rescaled=False)
    made_of = (tuning.to_numpy(), purpose)
    names = [f"beta {beta}" for beta in betas]
    report = gather(problem, target_names=names, made_of=made_of, agree_seconds=60, time_limit_seconds=None)
    assert report is not None
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        command = "rposst report arrows.csv --size 3 --betas 0,1,2,4 --no-rescale --out report.html"
        page.write_text(report_page(report, title="A small test for Racing Arrows", command=command), "utf-8")
        with open_browser(Path(folder) / "profile") as browser:
            browser.open(page, width=WIDTH, height=HEIGHT)
            browser.screenshot(PICTURE)


if __name__ == "__main__":
    main()
