"""Make untrusted text harmless for a terminal.

A prompt, a reply or an error may contain escape sequences (which move the cursor, change the title, paste), invisible
characters, and marks that reverse the reading direction. None of them is dropped: each is shown as a visible
character, so that the reader sees it was there.
"""

import re
from typing import Final

# C0 and C1 controls, DEL, invisible and direction-changing format characters, line separators, half characters, tags.
# The two joiners (U+200C, U+200D) stay: scripts and emoji need them, and they are harmless.
ACTIVE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_PICTURES: Final = 0x2400
_DELETE: Final = 0x7F


def line(text: object) -> str:
    """The text as one line: line breaks and tabs are shown as symbols too."""
    return ACTIVE.sub(_visible, str(text))


def block(text: object) -> str:
    """The text with its line breaks and tabs; everything else is shown as symbols."""
    parts = str(text).replace("\r\n", "\n").expandtabs(4).split("\n")
    return "\n".join(line(part) for part in parts)


def _visible(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(_PICTURES + code)
    if code == _DELETE:
        return "\N{SYMBOL FOR DELETE}"
    return f"<U+{code:04X}>"
