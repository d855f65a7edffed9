"""Text for people: bounded, and safe to display anywhere."""

import re
from typing import Final

from wakeful.integrations.system.text import cap, fit
from wakeful.ports.outbox import Delivery

TEXT_MAX: Final = 64 * 1024
"""How many bytes of a message are delivered; a marker replaces the rest."""

# Control characters except tab and line feed: terminals interpret them. Then direction overrides, which make a text
# read differently than it is, and separators that some programs treat as line ends.
_CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def inert(text: str) -> str:
    """`text` as plain text of at most `TEXT_MAX` bytes."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return cap(_CONTROLS.sub("", fit(lines)), TEXT_MAX).strip("\n")


def undelivered(row: Delivery, delivery_id: str) -> str:
    """What people are told about a message that was given up, and the command that sends it again."""
    error = row.last_error or "no reason was given"
    stop = "" if error.endswith((".", "?", "!")) else "."
    again = f"Send it again: wakeful outbox retry {delivery_id}"
    return f"A message to {row.channel} could not be delivered: {error}{stop} {again}"
