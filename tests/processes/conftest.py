"""Fixtures for tests of whole programs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from processes.kit import Nursery, nursery


@pytest.fixture
def children(tmp_path: Path) -> Iterator[Nursery]:
    """Starts programs in a folder of the test's own, and ends them with it."""
    with nursery(tmp_path) as started:
        yield started
