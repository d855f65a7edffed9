"""The error message of a failed turn: the program, the cause, and the cure.

Programs report errors as nested JSON, with tracebacks, in colour and over many lines. The message shown to people is
the innermost one, without braces and stack traces.
"""

import re
from typing import Final, NamedTuple

from wakeful.integrations.agents.presets.preset import Preset
from wakeful.integrations.agents.printed import message_in, plain
from wakeful.integrations.system.text import one_line

PERMANENT: Final = frozenset({400, 401, 403, 404, 405, 413, 422})
_SAID_MAX: Final = 300
_FAILS: Final = 500

# A line of a stack trace, in the languages these programs are written in.
_STACK: Final = re.compile(r"^\s*(at |File \"|Traceback |Stack backtrace|\d+: <unknown>|\.\.\. \d+ more|~~|\^)")
_STATUS: Final = re.compile(
    r"(?:API Error:?|status(?: code)?:?|HTTP|Error:?|last status:|\()\s*\(?([1-5]\d\d)\b|^([1-5]\d\d)\s", re.IGNORECASE
)
_WORDS: Final = (
    (
        401,
        re.compile(r"\b(unauthori[sz]ed|authentication|invalid api key|not logged in|unauthenticated|/login)\b", re.I),
    ),
    (429, re.compile(r"\b(rate.?limit(ed)?|too many requests|RESOURCE_EXHAUSTED|quota)\b", re.I)),
    (400, re.compile(r"\b(bad ?request|INVALID_ARGUMENT)", re.I)),
    (500, re.compile(r"\b(internal server( error)?|overloaded|high demand|InternalServerError|bad gateway)\b", re.I)),
)
_CUT: Final = re.compile(
    r"connection|terminated|ECONN|socket|network|fetch failed|disconnected|cannot connect|sending request|timed out",
    re.I,
)


class AgentFailure(NamedTuple):
    """A failure message, and whether it is permanent."""

    sentence: str
    permanent: bool


def status_in(said: str) -> int | None:
    """The HTTP status mentioned in `text`."""
    match = _STATUS.search(said)
    if match is not None:
        return int(match[1] or match[2])
    return next((status for status, words in _WORDS if words.search(said)), None)


def trouble(preset: Preset, said: str | None, status: int | None, code: int | None) -> AgentFailure:
    """The failure of a turn: the program, the cause, the cure."""
    message, inner = _innermost(said or "")
    status = status or inner or status_in(message)
    cause = message.rstrip(".") or (f"exited with {code}" if code else "ended without a reply")
    return AgentFailure(f"{preset.program}: {cause}; {_cure(preset, message, status)}", status in PERMANENT)


def error_lines(text: str) -> str:
    """The last lines of `text`, where programs put their error, without stack traces and warnings."""
    lines = [line.strip() for line in plain(text).splitlines()]
    kept = [line for line in lines if line and not _STACK.match(line) and not line.startswith(("Warning:", "WARNING:"))]
    errors = [line for line in kept if re.search(r"error|fail|not found|invalid|denied|limit", line, re.I)]
    return (errors or kept or [""])[-1]


def _innermost(said: str) -> tuple[str, int | None]:
    text = "\n".join(line for line in plain(said).splitlines() if not _STACK.match(line))
    message, status = message_in(text)
    message = re.sub(r"^\[?API Error:?\s*|\]$", "", message.strip()) if "API Error" in text else message
    message = re.sub(r"[{}\[\]]", "", one_line(message))
    return (message if len(message) <= _SAID_MAX else message[: _SAID_MAX - 1] + "…"), status


def _cure(preset: Preset, message: str, status: int | None) -> str:
    if _CUT.search(message) and (status is None or status >= _FAILS):
        return "check the network, and the address of the model's server"
    match status:
        case 401 | 403:
            return f"{preset.login}, and check the key"
        case 429:
            return "the model's server limits the request rate: run less often, or raise the account's limit"
        case 404:
            return "check the model and the address of its server"
        case 400 | 405 | 413 | 422:
            return "the model's server refused the request: check model and args of this agent"
        case int() if status >= _FAILS:
            return "the model's server failed: try again later, or check its status page"
    return f"the run's output has everything it printed; try {preset.program} manually in the same folder"
