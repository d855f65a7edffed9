"""Fixtures of the fault tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.kit import Field
from postgres.server import emptied_url as url
from postgres.server import server

__all__ = ["server", "url"]


@pytest.fixture
def field(tmp_path: Path) -> Iterator[Field]:
    """A field on the embedded store."""
    made = Field(str(tmp_path / "wakeful.db"), tmp_path)
    yield made
    made.close()


@pytest.fixture
def cluster(url: str, tmp_path: Path) -> Iterator[Field]:
    """A field on PostgreSQL."""
    made = Field(url, tmp_path)
    yield made
    made.close()
