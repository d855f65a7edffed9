"""Untrusted text and JSON, harmless for a terminal."""

import json
import re
from typing import Any

from wakeful.core.terminal_text import ACTIVE, block, line

__all__ = ["as_json", "as_json_line", "block", "line"]


def as_json(value: Any) -> str:
    """JSON with every active character escaped: lossless, and harmless to print."""
    written = json.dumps(value, ensure_ascii=False, indent=2)
    return "\n".join(ACTIVE.sub(_escaped, part) for part in written.split("\n"))


def as_json_line(value: Any) -> str:
    """Like `as_json`, on one line."""
    return ACTIVE.sub(_escaped, json.dumps(value, ensure_ascii=False))


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code <= 0xFFFF:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"
