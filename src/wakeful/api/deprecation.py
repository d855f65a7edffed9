"""Warnings of names of 0.2."""

import warnings


def warn_of(name: str, now: str = "", *, instead: str = "") -> None:
    """Warn who called the method that called this. `now` is the name in this version, or `instead` says what to do."""
    text = f"Wakeful.{name} is deprecated, and is gone in 0.4; {instead or f'use app.{now}'}"
    warnings.warn(text, DeprecationWarning, stacklevel=3)
