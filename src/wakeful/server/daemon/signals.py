"""SIGINT and SIGTERM: the first stops the daemon gracefully, the second kills it."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

log = logging.getLogger("wakeful.server.daemon")

FORCED: Final = 128
"""Added to the signal number for the exit code, as shells do."""

SAME_SIGNAL: Final = 0.5
"""Seconds within which a second signal counts as a duplicate: wrappers forward what the whole group received."""


@contextmanager
def signals_heard() -> Iterator[asyncio.Future[None]]:
    """A future that the first signal completes."""
    loop = asyncio.get_running_loop()
    first: asyncio.Future[None] = loop.create_future()
    numbers = (signal.SIGINT, signal.SIGTERM)
    heard_at = 0.0

    def on_signal(number: signal.Signals) -> None:
        nonlocal heard_at
        if not first.done():
            heard_at = loop.time()
            first.set_result(None)
        elif loop.time() - heard_at > SAME_SIGNAL:
            log.warning("%s again: exiting immediately", number.name)
            os._exit(FORCED + number)

    for number in numbers:
        with suppress(RuntimeError, ValueError):  # only the main thread receives signals
            loop.add_signal_handler(number, on_signal, number)
    try:
        yield first
    finally:
        for number in numbers:
            with suppress(RuntimeError, ValueError):
                loop.remove_signal_handler(number)
