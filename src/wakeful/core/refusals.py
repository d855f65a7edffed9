"""Refusals that are not about a field: something does not exist, or cannot be done in the current state."""


class NotFound(LookupError):
    """Nothing has this name."""


class NotStarted(RuntimeError):
    """The app was used before its start or after its end."""

    def __init__(self) -> None:
        super().__init__("not started; use `async with app:` or `await app.start()` first")


class Conflict(RuntimeError):
    """Not possible in the current state; the message says what prevents it."""


class Stale(Exception):
    """What is stored is not what the caller has read."""

    def __init__(self, text: str, tag: str | None = None) -> None:
        super().__init__(text)
        self.tag = tag
