"""The name of a schedule or a workflow. A separate module, because every command checks a slug."""

import re
from typing import Final

SLUG_PATTERN: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


def slug_of(text: str) -> str:
    """A slug made from any string."""
    made = re.sub(r"[^a-z0-9._]+", "-", text.lower()).strip("-._")
    return made[:56].strip("-._") or "job"
