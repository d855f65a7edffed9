"""At the end of `make test-agents`: what every program said in every scenario, in one table."""

import pytest

OUTCOME = "outcome"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [report for kind in ("passed", "failed") for report in terminalreporter.stats.get(kind, [])]
    told = sorted({str(value) for report in reports for name, value in report.user_properties if name == OUTCOME})
    if told:
        terminalreporter.section("what the programs said")
    for line in told:
        terminalreporter.write_line(line)
