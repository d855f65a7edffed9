"""Prepares an agent's reply for storage: bounded, cleaned, and never trusted."""

import re
from typing import Final

from wakeful.core.heartbeat.conversations import is_conversation
from wakeful.integrations.system.text import cap, fit

READ_MAX: Final = 1024 * 1024
"""How much of a response is read."""

REPLY_MAX: Final = 64 * 1024
"""How much of a reply is kept."""

# All control characters except tab, line feed and carriage return: terminals interpret them.
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_SESSION_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@=+-]{0,199}", re.ASCII)


def marked(prompt: str, slug: str) -> str:
    """The prompt with its origin as a prefix, so that an agent does not mistake it for a person's request. A person's
    message on a channel is passed unchanged."""
    if is_conversation(slug):
        return prompt
    return f"[scheduler:{slug}] {prompt}"


def reply_of(text: object) -> str | None:
    """A reply ready for storage; None if it is not text."""
    if not isinstance(text, str):
        return None
    return cap(_CONTROLS.sub("\ufffd", fit(text[:READ_MAX])), REPLY_MAX)


def session_id_of(value: object) -> str | None:
    """A valid session id, or None. It is used in URLs and command lines, so nothing else may pass."""
    return value if isinstance(value, str) and _SESSION_ID.fullmatch(value) else None
