"""The ack token: how an agent reports that there is nothing to report.

Theory of operation: a reply is judged once. A reply that is empty, or that contains the token and little else, is not
delivered; any other reply is delivered without the token. By default the token counts only at the start or the end of
the reply (an agent that explains the token has something to say); `anywhere` accepts it at any place. It must be a
separate word: `HEARTBEAT_OKAY` does not match. Models like to decorate words, so emphasis marks and punctuation around
the reply are ignored.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, NamedTuple, TypeAlias

AckMatch: TypeAlias = Literal["edges", "anywhere"]
Verdict: TypeAlias = Literal["ok-empty", "ok-ack", "sent"]

_DRESS: Final = " \t\r\n*_~`\"'.,:;!-()[]<>#"


@dataclass(frozen=True, slots=True)
class AckRules:
    """What counts as an acknowledgement."""

    token: str = "HEARTBEAT_OK"  # noqa: S105 - a word in a reply
    chars_max: int = 300
    match: AckMatch = "edges"


class Judged(NamedTuple):
    """Whether a reply is an acknowledgement, and the text to deliver."""

    verdict: Verdict
    text: str | None  # None: nothing


def judge(reply: str, rules: AckRules) -> Judged:
    """Decide whether a reply is delivered, and with which text. The text never contains the token."""
    if not reply.strip():
        return Judged("ok-empty", None)
    text = stripped(reply, rules.token)
    if _is_acknowledged(reply, rules) and len(text) <= rules.chars_max:
        return Judged("ok-ack", None)
    return Judged("sent", text) if text else Judged("ok-ack", None)


def stripped(text: str, token: str) -> str:
    """The text without the token, at any place; for everything that is sent to a person."""
    word = _word(token)
    text = word.sub("", text)
    if word.search(text) is not None:  # removing one token joined two halves of another: keep them separate
        text = word.sub("\n" if " " in token else " ", text)
    return text.strip()


def _is_acknowledged(reply: str, rules: AckRules) -> bool:
    spans = [match.span() for match in _word(rules.token).finditer(reply)]
    if not spans or rules.match == "anywhere":
        return bool(spans)
    before, after = reply[: spans[0][0]], reply[spans[-1][1] :]
    return not before.strip(_DRESS) or not after.strip(_DRESS)


@lru_cache(maxsize=16)
def _word(token: str) -> re.Pattern[str]:
    before = r"(?<!\w)" if token[:1].isalnum() or token.startswith("_") else ""
    after = r"(?!\w)" if token[-1:].isalnum() or token.endswith("_") else ""
    return re.compile(before + re.escape(token) + after)
