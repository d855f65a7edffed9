"""Refusals that are not about a field: what was asked for is not there, or cannot be done now."""


class NotFound(LookupError):
    """Nothing of that name."""


class Conflict(RuntimeError):
    """It cannot be done in the state things are in; the message says what stands in the way."""
