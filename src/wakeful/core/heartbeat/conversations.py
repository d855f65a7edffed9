"""Conversations: a person on a channel, and the slug that their runs carry.

A schedule's slug has no colon, so the name of a conversation never collides with one. The name is used in URLs and file
names, so it contains only a few plain characters; a recipient that has others is replaced by a digest.
"""

import hashlib
import re
from typing import Final

_PREFIX: Final = "message:"
_PLAIN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9@+_-]{0,63}", re.ASCII)


def conversation(channel: str, to: str) -> str:
    """The name of the conversation with this person on this channel."""
    who = to if _PLAIN.fullmatch(to) else f"~{hashlib.sha256(to.encode('utf-8', 'replace')).hexdigest()[:24]}"
    return f"{_PREFIX}{channel}:{who}"


def channel_of(name: str) -> str | None:
    """The channel of a conversation; None if this is not the name of one."""
    return name.removeprefix(_PREFIX).partition(":")[0] if is_conversation(name) else None


def is_conversation(name: str) -> bool:
    """Whether this is the name of a conversation, whose prompts are a person's messages."""
    return name.startswith(_PREFIX)
