"""Patterns of the settings are bounded: whatever they are, the event loop goes on and SIGTERM is obeyed."""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from wakeful.integrations.agents import patterns
from wakeful.integrations.agents.patterns import LINE_MAX, TAIL_MAX, TooSlow, bounded_lines, search

ENDLESS = r"(a+)+$"
HAYSTACK = "a" * 4_000 + "b"


async def test_900_kilobytes_on_one_line_are_no_trouble() -> None:
    """This pattern froze the daemon of 0.1; what it looks for stands in the last line."""
    text = "x" * 900_000 + "\nsession_id=abc-1\n"
    assert await search({"session_pattern": r".*session_id=(\S+)"}, text) == {"session_pattern": "abc-1"}
    assert await search({"session_pattern": r".*session_id=(\S+)"}, "x" * 900_000) == {"session_pattern": None}


async def test_a_pattern_without_end_stops_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop ticks while it is matched; then it is given up, by its name."""
    monkeypatch.setattr(patterns, "WITHIN", 2.0)
    searching = asyncio.ensure_future(search({"fine": "(b)", "error_pattern": ENDLESS}, HAYSTACK))
    ticks = 0
    while not searching.done():
        await asyncio.sleep(0.01)
        ticks += 1
    with pytest.raises(TooSlow, match="error_pattern took longer than 2 s over the output; write a simpler pattern"):
        await searching
    assert ticks > 3


def test_sigterm_is_obeyed_while_a_pattern_has_no_end(tmp_path: Path) -> None:
    """In a real process, with a minute for the pattern."""
    program = tmp_path / "daemon.py"
    program.write_text(f"""
import asyncio, os, signal, subprocess
from wakeful.integrations.agents import patterns
patterns.WITHIN = 60
started = []
class Recorded(subprocess.Popen):
    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        started.append(self)
subprocess.Popen = Recorded
async def main():
    asked = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asked.set)
    searching = asyncio.ensure_future(patterns.search({{"p": {ENDLESS!r}}}, {HAYSTACK!r}))
    while not started:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.5)
    print("matching", searching.done(), flush=True)
    await asked.wait()
    print("ended", searching.done(), flush=True)
    started[0].kill()  # it would keep a processor busy for the rest of the minute
    os._exit(0)
asyncio.run(main())
""")
    command = [sys.executable, str(program)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "matching False\n"
            process.send_signal(signal.SIGTERM)
            assert process.stdout.readline() == "ended False\n"
            assert process.wait(timeout=120) == 0
        finally:
            process.kill()


def test_lines_are_bounded() -> None:
    """In number of bytes and in length."""
    lines = bounded_lines("y" * TAIL_MAX + "\n" + "x" * (LINE_MAX * 2) + "\nend")
    assert lines[-1] == "end" and len(lines[-2]) == LINE_MAX and sum(map(len, lines)) <= TAIL_MAX


async def test_the_last_line_that_matches_counts() -> None:
    """The first group, or all of it."""
    text = "id=1\nid=2\nbye"
    assert await search({"a": r"id=(\d)", "b": r"id=\d", "c": "no"}, text) == {"a": "2", "b": "id=2", "c": None}
    assert await search({}, text) == {}
