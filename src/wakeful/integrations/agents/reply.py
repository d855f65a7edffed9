"""What every agent is told about a prompt's origin, and what may be a session id."""

import re
from typing import Final

from wakeful.core.heartbeat.conversations import is_conversation

_SESSION_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@=+-]{0,199}", re.ASCII)


def marked(prompt: str, slug: str) -> str:
    """The prompt with its origin as a prefix, so that an agent does not mistake it for a person's request. A person's
    message on a channel is passed unchanged."""
    if is_conversation(slug):
        return prompt
    return f"[scheduler:{slug}] {prompt}"


def session_id_of(value: object) -> str | None:
    """A valid session id, or None. It is used in URLs and command lines, so nothing else may pass."""
    return value if isinstance(value, str) and _SESSION_ID.fullmatch(value) else None
