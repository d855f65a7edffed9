"""The daemon cannot start."""


class DaemonRefused(Exception):
    """The daemon cannot start; the text says why and what to do."""
