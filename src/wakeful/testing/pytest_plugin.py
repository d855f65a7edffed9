"""The fixture `wakeful_virtual`, registered by the entry point `pytest11`."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def wakeful_virtual(tmp_path: Path) -> Callable[..., Any]:
    """`wakeful.testing.virtual` with a separate file per test: `async with wakeful_virtual(app, start=…) as time`."""
    from wakeful.testing import virtual  # imported on use: every run of pytest loads this module

    return partial(virtual, store=tmp_path / "wakeful-virtual.db")
