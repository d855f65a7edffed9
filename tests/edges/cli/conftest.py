"""What the tests of the command line share: one daemon for each file."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from edges.cli.kit import Cli, daemon


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    """The command line over a running daemon."""
    with daemon(tmp_path_factory.mktemp("home") / "wakeful") as started:
        yield started


@pytest.fixture
def alone(tmp_path: Path) -> Cli:
    """The command line over a home without a daemon."""
    return Cli(tmp_path / "home")
