"""Reading a definition's `sessionConfig`: which of it an agent knows, and whether it can be used."""

from collections.abc import Mapping
from typing import Any, Final

PERSIST: Final = "persistSession"

_WORDS: Final[dict[type, str]] = {str: "text", bool: "true or false", int: "a whole number"}


def is_persistent(config: Mapping[str, Any]) -> bool:
    """Whether the session is kept for the next turn, which is so unless the definition says otherwise."""
    return config.get(PERSIST, True) is not False


def wrong_config(config: Mapping[str, Any], known: Mapping[str, type]) -> str | None:
    """A sentence about the first thing in it that cannot be used; null means that it is not given."""
    allowed = {PERSIST: bool, **known}
    for name, value in config.items():
        wanted = allowed.get(name)
        if wanted is None:
            return f"sessionConfig.{name} is not known to this agent; it knows {', '.join(allowed)}"
        is_wanted = isinstance(value, wanted) and (wanted is bool or not isinstance(value, bool))
        if value is not None and not is_wanted:
            return f"sessionConfig.{name} is {value!r:.100}; write {_WORDS[wanted]}"
    return None
