"""What the tests of the actions share: a fire, a ladder that remembers, and waiting for a condition."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from climbing import eventually, ladder
from wakeful.ports.action import Fire

__all__ = ["eventually", "ladder"]


@pytest.fixture
def fire() -> Fire:
    """The second attempt at one instant."""
    return Fire(
        run_id=42,
        schedule_id=7,
        slug="report",
        planned_at=1_769_763_600_000,
        due_at=1_769_763_605_250,
        trigger="schedule",
        attempt=2,
        idempotency_key="report-key-1",
        receipt_url="http://127.0.0.1:1/receipt",
    )


@pytest.fixture
def is_alive() -> Callable[[int], bool]:
    """Whether a process runs; a zombie does not."""

    def check(pid: int) -> bool:
        try:
            os.kill(pid, 0)
            return b") Z " not in Path(f"/proc/{pid}/stat").read_bytes()
        except ProcessLookupError:
            return False
        except FileNotFoundError:  # no such folder: on a system without it, being signalled is all that is known
            return not Path("/proc/self").exists()

    return check


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Write an importable module."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(name: str, source: str) -> None:
        (tmp_path / f"{name}.py").write_text(source)

    return write
