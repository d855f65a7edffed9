"""The ack token: how an agent says that there is nothing to say.

Theory of operation: a reply is judged once. An empty one, or one that carries the token and little else, is kept to
ourselves; anything else is for a person, without the token. By default the token counts only at the edges of the reply
(an agent that explains what the token is for has something to say); `anywhere` takes it wherever it stands. It is a
word of its own: `HEARTBEAT_OKAY` is another word. Models like to dress words up, so marks of emphasis and punctuation
around the reply are looked through.
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
    """What a reply is, and what of it is for a person."""

    verdict: Verdict
    text: str | None  # None: nothing


def judge(reply: str, rules: AckRules) -> Judged:
    """Whether a reply is to be delivered, and as what. Its text never has the token in it."""
    if not reply.strip():
        return Judged("ok-empty", None)
    rest = stripped(reply, rules.token)
    if _is_acknowledged(reply, rules) and len(rest) <= rules.chars_max:
        return Judged("ok-ack", None)
    return Judged("sent", rest) if rest else Judged("ok-ack", None)


def stripped(text: str, token: str) -> str:
    """The text without the token, wherever it stood; for whatever goes to a person."""
    word = _word(token)
    text = word.sub("", text)
    if word.search(text) is not None:  # taking one out brought two halves of another together: keep halves apart
        text = word.sub("\n" if " " in token else " ", text)
    return text.strip()


def _is_acknowledged(reply: str, rules: AckRules) -> bool:
    found = [match.span() for match in _word(rules.token).finditer(reply)]
    if not found or rules.match == "anywhere":
        return bool(found)
    before, after = reply[: found[0][0]], reply[found[-1][1] :]
    return not before.strip(_DRESS) or not after.strip(_DRESS)


@lru_cache(maxsize=16)
def _word(token: str) -> re.Pattern[str]:
    before = r"(?<!\w)" if token[:1].isalnum() or token.startswith("_") else ""
    after = r"(?!\w)" if token[-1:].isalnum() or token.endswith("_") else ""
    return re.compile(before + re.escape(token) + after)
