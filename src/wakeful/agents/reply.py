"""What an agent gave back, made fit to be kept: bounded, cleaned, and never trusted."""

import re
from collections.abc import Mapping
from typing import Any, Final

from wakeful.adapters.text import cap, fit
from wakeful.core.conversations import is_conversation

READ_MAX: Final = 1024 * 1024
"""How much of an answer is read."""

REPLY_MAX: Final = 64 * 1024
"""How much of a reply is kept."""

USAGE_MAX: Final = 16
"""How many counts of usage are kept."""

# All control characters but tab, line feed and carriage return: on a terminal they would be commands.
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_SESSION_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@=+-]{0,199}", re.ASCII)
_COUNT_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}", re.ASCII)
_COUNT_MAX: Final = 2**53

# The same three counts have several names in this world; the rest is kept as it is named.
_COMMON_NAMES: Final = {
    "prompt_tokens": "inputTokens",
    "input_tokens": "inputTokens",
    "completion_tokens": "outputTokens",
    "output_tokens": "outputTokens",
    "total_tokens": "totalTokens",
}


def marked(prompt: str, slug: str) -> str:
    """The prompt with its origin before it, so that an agent does not take it for a person's request. What a person
    said on a channel is just that, and goes as it is."""
    if is_conversation(slug):
        return prompt
    return f"[scheduler:{slug}] {prompt}"


def reply_of(text: object) -> str | None:
    """A reply fit to be kept; None for what is no text."""
    if not isinstance(text, str):
        return None
    return cap(_CONTROLS.sub("\ufffd", fit(text[:READ_MAX])), REPLY_MAX)


def usage_of(counts: object) -> dict[str, int] | None:
    """The counts an agent reports; whatever is no count is left out."""
    if not isinstance(counts, Mapping):
        return None
    usage: dict[str, int] = {}
    for name, count in counts.items():
        if len(usage) < USAGE_MAX and _is_name(name) and _is_count(count):
            usage[_COMMON_NAMES.get(str(name), str(name))] = count
    return usage or None


def session_id_of(value: object) -> str | None:
    """A session id, if it can be one. It goes into addresses and command lines, so nothing else may pass for it."""
    return value if isinstance(value, str) and _SESSION_ID.fullmatch(value) else None


def added(one: dict[str, int] | None, other: dict[str, int] | None) -> dict[str, int] | None:
    """Two usages together."""
    if one is None or other is None:
        return one or other
    return {name: one.get(name, 0) + other.get(name, 0) for name in {**one, **other}}


def _is_name(name: Any) -> bool:
    return isinstance(name, str) and _COUNT_NAME.fullmatch(name) is not None


def _is_count(count: Any) -> bool:
    return isinstance(count, int) and not isinstance(count, bool) and 0 <= count <= _COUNT_MAX
