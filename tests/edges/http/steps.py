"""Counts what SQLite does for readers, so that a test can say what grows and what does not."""

import pytest

from edges.http.kit import Client
from wakeful.stores.sqlite import reader
from wakeful.stores.sqlite.connection import Opened


class Steps:
    """Counts steps of SQLite's virtual machine."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        monkeypatch.setattr(reader, "end_when_late", self._count)

    async def of(self, api: Client, path: str) -> int:
        """How many steps a request takes."""
        before = self.count
        assert (await api.get(path)).status == 200, path
        return self.count - before

    def _count(self, opened: Opened, *, within: float) -> None:
        opened.connection.set_progress_handler(self._step, 1)

    def _step(self) -> None:
        self.count += 1
