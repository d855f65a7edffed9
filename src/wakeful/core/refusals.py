"""Refusals that are not about a field: something does not exist, or cannot be done in the current state."""


class NotFound(LookupError):
    """Nothing has this name."""


class Conflict(RuntimeError):
    """Not possible in the current state; the message says what prevents it."""
