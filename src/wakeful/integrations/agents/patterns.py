"""Matches regular expressions from the settings against a program's output, bounded and off the event loop.

Python's matching holds the GIL, so a slow pattern blocks every thread of this process: the clock, the API, even SIGTERM
handling. So patterns run in a separate process, over a bounded tail, one line at a time, and that process is killed on
timeout.
"""

import json
import math
import re
import subprocess
import sys
from collections.abc import Mapping
from functools import partial
from typing import Final, TypeAlias

from wakeful.integrations.system.threads import in_thread

TAIL_MAX: Final = 256 * 1024
LINE_MAX: Final = 8 * 1024
WITHIN: Final = 5.0
"""Seconds for all patterns of one turn, including the start of the process."""

Matches: TypeAlias = Mapping[str, str | None]
"""The match of each pattern by name, its first group or all of it; None if there is none."""

# Lines are tried from the last to the first: the end of the output counts.
_MATCHER: Final = """
import json, re, signal, sys
signal.alarm(ALARM)  # ends this process if its parent died
asked = json.load(sys.stdin)
lines = asked["lines"]
for name, pattern in asked["patterns"].items():
    compiled, match = re.compile(pattern), None
    for line in reversed(lines):
        match = compiled.search(line)
        if match is not None:
            break
    text = None if match is None else (match[1] if compiled.groups and match[1] is not None else match[0])
    print(json.dumps([name, text]), flush=True)
"""


class TooSlow(Exception):
    """A pattern timed out; `name` is its setting."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} took longer than {WITHIN:g} s over the output; write a simpler pattern")
        self.name = name


async def search(patterns: Mapping[str, str], text: str) -> Matches:
    """The matches of each pattern in the lines of `text` (of its end, if it is long). Raises `TooSlow`."""
    if not patterns:
        return {}
    asked = json.dumps({"patterns": dict(patterns), "lines": bounded_lines(text)}).encode("utf-8", "replace")
    printed = await in_thread(partial(_match, asked), name="patterns")
    matches: dict[str, str | None] = dict(json.loads(line) for line in printed.splitlines())
    missing = next((name for name in patterns if name not in matches), None)
    if missing is not None:
        raise TooSlow(missing)
    return matches


def _match(asked: bytes) -> bytes:
    """In a thread: the matches the other process found before the timeout."""
    argv = [sys.executable, "-I", "-S", "-c", _MATCHER.replace("ALARM", str(math.ceil(WITHIN) + 5))]
    try:
        done = subprocess.run(  # noqa: S603 - our own program
            argv,
            input=asked,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=WITHIN,
            check=False,
            start_new_session=True,
        )
    except subprocess.TimeoutExpired as late:  # it was ended
        whole, _, _ = (late.output or b"").rpartition(b"\n")
        return bytes(whole)
    return done.stdout


def bounded_lines(text: str) -> list[str]:
    """The last lines of `text`, each truncated, so that the amount of work is bounded."""
    return [line[:LINE_MAX] for line in text[-TAIL_MAX:].splitlines()]


def wrong_pattern(name: str, pattern: str | None) -> str | None:
    """Why a pattern cannot be used; None if it can."""
    try:
        re.compile(pattern or "")
    except (re.error, RecursionError, OverflowError) as error:
        return f"{name} '{pattern}' cannot be read ({error}); correct the regular expression"
    return None
