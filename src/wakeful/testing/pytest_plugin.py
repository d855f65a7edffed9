"""The fixture `wakeful_virtual`, which pytest finds by the entry point `pytest11`."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def wakeful_virtual(tmp_path: Path) -> Callable[..., Any]:
    """`wakeful.testing.virtual` on a file of this test's own: `async with wakeful_virtual(app, start=…) as time`."""
    from wakeful.testing import virtual  # not before a test asks: every run of pytest loads this module

    return partial(virtual, store=tmp_path / "wakeful-virtual.db")
