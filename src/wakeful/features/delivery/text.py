"""Texts on their way to people: bounded, and inert wherever they are shown."""

import re
from typing import Final

from wakeful.integrations.system.text import cap, fit

TEXT_MAX: Final = 64 * 1024
"""How many bytes of a text are delivered; what is left out is said in its place."""

# Control characters but tab and line feed: on a terminal they are commands. Then the marks that make a text read other
# than it is (direction overrides), and the separators that some programs take for the end of a line.
_CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def inert(text: str) -> str:
    """The text as plain text, at most `TEXT_MAX` bytes of it."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return cap(_CONTROLS.sub("", fit(lines)), TEXT_MAX).strip("\n")
