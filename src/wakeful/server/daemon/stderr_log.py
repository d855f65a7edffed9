"""The log on standard error, for a terminal or a service manager."""

import logging
import sys
from typing import Final

from wakeful.core.terminal_text import block

FORMAT: Final = "%(asctime)s %(levelname)s %(name)s %(message)s"


def log_to_stderr(level: int) -> None:
    """Log this level and above. What others wrote, such as the path of a request, cannot act on the terminal."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Harmless(FORMAT))
    logging.basicConfig(level=level, handlers=[handler])


class _Harmless(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return block(super().format(record))
