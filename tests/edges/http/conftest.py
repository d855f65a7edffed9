"""One served API per test."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from edges.http.kit import Client, served


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Client]:
    async with served(tmp_path) as client:
        yield client
