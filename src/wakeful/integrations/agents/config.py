"""Checks a definition's `sessionConfig` against what an agent supports."""

import re
from collections.abc import Mapping
from typing import Any, Final

PERSIST: Final = "persistSession"
MODEL: Final = "model"
_MODEL: Final = re.compile(r"[^\s-][^\x00-\x1f\x7f]{0,199}")
"""A name that no program mistakes for an option."""

_WORDS: Final[dict[type, str]] = {str: "text", bool: "true or false", int: "a whole number"}


def is_persistent(config: Mapping[str, Any]) -> bool:
    """Whether the session is kept for the next turn (the default)."""
    return config.get(PERSIST, True) is not False


def wrong_config(config: Mapping[str, Any], known: Mapping[str, type]) -> str | None:
    """An error about the first unusable entry; null counts as not given."""
    allowed = {PERSIST: bool, **known}
    for name, value in config.items():
        wanted = allowed.get(name)
        if wanted is None:
            return f"sessionConfig.{name} is not supported by this agent; it supports {', '.join(allowed)}"
        is_wanted = isinstance(value, wanted) and (wanted is bool or not isinstance(value, bool))
        if value is not None and not is_wanted:
            return f"sessionConfig.{name} is {value!r:.100}; write {_WORDS[wanted]}"
        if name == MODEL and isinstance(value, str) and not _MODEL.fullmatch(value):
            return f"sessionConfig.{name} is {value!r:.100}; write the name of a model, such as gpt-5 or openai/gpt-5"
    return None
