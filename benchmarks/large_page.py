"""How long a browser takes to draw a report of 500 × 200 results, and of 20 × 12: ``make bench-page``.

It needs the browser that the tests use.
"""

import tempfile
from pathlib import Path

import numpy as np
from browsers import open_browser

import rposst_opt as ro
from rposst_opt.reports.pages.report import gather
from rposst_opt.reports.pages.report_page import report_page

OPENED = 5  # times; the least is taken


def page(n_cases: int, n_policies: int) -> str:
    """The report of a made-up table of so many cases and policies, with four targets."""
    rng = np.random.default_rng(6)
    skill, difficulty = rng.normal(size=n_policies), rng.normal(size=(n_cases, 1))
    results = 1 / (1 + np.exp(difficulty - skill + rng.normal(size=(n_cases, n_policies)) / 3))
    problem = ro.Problem(results=results, size=3, measure=ro.CVaR(0.05), targets=ro.softmax_targets(results))
    report = gather(problem, time_limit_seconds=10, backends=[], largest_size=3)
    assert report is not None
    return report_page(report, title="A report", command="make bench-page")


def main() -> None:
    """Open both and print their times."""
    with tempfile.TemporaryDirectory() as folder, open_browser(Path(folder) / "profile") as browser:
        times = []
        for n_cases, n_policies in ((20, 12), (500, 200)):
            path = Path(folder) / f"{n_cases}.html"
            path.write_text(page(n_cases, n_policies), "utf-8")
            drawn = []
            for _ in range(OPENED):
                browser.open(path)
                drawn.append(browser.drawn_milliseconds() or 0)
            times.append(min(drawn))
            print(f"{n_cases} × {n_policies}: drawn after {min(drawn)} ms")
        print(f"ratio: {times[1] / times[0]:.1f}")


if __name__ == "__main__":
    main()
