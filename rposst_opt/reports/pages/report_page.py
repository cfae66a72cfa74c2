"""A report as one page. Nothing is solved here."""

from collections.abc import Sequence

from rposst_opt.reports.pages.page import render
from rposst_opt.reports.pages.report import Report
from rposst_opt.reports.pages.sections import SECTIONS, Section


def report_page(
    report: Report,
    *,
    title: str = "A small test",
    command: str = "rposst_opt.reports.pages",
    sections: Sequence[Section] = SECTIONS,
) -> str:
    """The report as one page; `command` is what the page says that it was made by."""
    problem, test = report.problem, report.test
    sections = [section for section in sections if section.is_shown(report)]
    readers = {name: read for section in sections for name, read in section.data.items()}
    return render(
        "report.html",
        sections=[(section, section.shows(report)) for section in sections],
        data={name: read(report) for name, read in readers.items()},
        title=title,
        command=command,
        words=(
            f"{len(test.cases)} of {problem.n_cases} test cases stand in for all of them; "
            f"{problem.n_policies} tuning policies, {len(report.target_names)} "
            f"{'target' if len(report.target_names) == 1 else 'targets'}, {problem.n_scenarios:,} scenarios."
        ),
    )
