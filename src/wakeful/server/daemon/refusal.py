"""How a daemon says that it does not start."""


class DaemonRefused(Exception):
    """The daemon does not start; the text says why and what to do."""
