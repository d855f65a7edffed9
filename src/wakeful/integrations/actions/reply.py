"""Prepares a reply for storage: bounded, cleaned, and never trusted."""

import re
from typing import Final

from wakeful.integrations.system.text import cap, fit

READ_MAX: Final = 1024 * 1024
"""How much of a response is read."""

REPLY_MAX: Final = 64 * 1024
"""How much of a reply is kept."""

# All control characters except tab, line feed and carriage return: terminals interpret them.
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def reply_of(text: object) -> str | None:
    """A reply ready for storage; None if it is not text."""
    if not isinstance(text, str):
        return None
    return cap(_CONTROLS.sub("\ufffd", fit(text[:READ_MAX])), REPLY_MAX)
