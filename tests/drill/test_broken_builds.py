"""A drill must fail on a build whose protection was removed: each build is a copy of the package with one edit."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import wakeful
from drill.kit import drill
from postgres.server import Server, server

__all__ = ["server"]

Edit = tuple[str, str, str]
Build = tuple[Edit, ...]
MINUTES = ("0.8", "2", "4")

# The faults that find what is missing.
ATTEMPT = "in the middle of an attempt"
MARK = "before the commit of a mark"
FREEZE = "past the lease, before an attempt"
STEP = "forward by 3 hours"

LEASE: Build = (("engine/lease.py", "while not self.holds():", "while False:"),)
"""A process that stood still begins attempts that another node has taken."""

ACKNOWLEDGED: Build = (
    (
        "stores/sqlite/writer.py",
        "            self._steps.commit()\n            return self._steps.answers()\n",
        "            self._post(answer, calls, fates := self._steps.answers())\n"
        "            self._steps.commit()\n"
        "            return fates\n",
    ),
)
"""Callers get their result before the commit."""

ACKNOWLEDGED_BY_SERVER: Build = (
    ("stores/postgres/writer.py", "        self._commit(session, doubt)", "        self.late = session, doubt"),
    (
        "stores/postgres/workers.py",
        "            del call, fate ",
        "            if late := worker.__dict__.pop('late', None):\n"
        "                worker._commit(*late)\n"
        "            del call, fate ",
    ),
)
"""The same on PostgreSQL."""

KEY: Build = (
    (
        "integrations/actions/http.py",
        '"Idempotency-Key": fire.idempotency_key,',
        '"Idempotency-Key": f"{fire.idempotency_key}-{fire.attempt}",',
    ),
)
"""A repetition carries a new key, so that its target cannot recognise it."""

RESCUE: Build = (("engine/recovery.py", "    awaited: frozenset[int] = frozenset()\n", "    return []\n"),)
"""Runs of a dead node are left as they are."""

GAPS: Build = (("core/schedule/cadence.py", "    if until <= after:\n        return", "    return"),)
"""Instants that were missed are passed over without a row."""


def _build(folder: Path, edits: Build) -> Path:
    """A copy of the package with these edits."""
    source = Path(wakeful.__file__).parent
    shutil.copytree(source, folder / "wakeful", ignore=shutil.ignore_patterns("__pycache__", "static"))
    (folder / "wakeful/server/page/static").symlink_to(source / "server/page/static")
    for name, before, after in edits:
        file = folder / "wakeful" / name
        text = file.read_text()
        assert text.count(before) == 1, f"{name} has changed; adapt this test"
        file.write_text(text.replace(before, after))
    return folder


@pytest.fixture
def build(tmp_path: Path) -> Callable[[Build], Path]:
    return lambda edits: _build(tmp_path / "build", edits)


def _is_caught(home: Path, package: Path, *options: str, by: str, count: str, words: str) -> None:
    """A drill says what is wrong, counts it, and exits with 1. A short one is enough, unless the machine is so busy
    that there is no time for the fault that finds it."""
    for minutes in MINUTES:
        code, report = drill(home, *options, "--minutes", minutes, package=package)
        is_tried = any(by in fault["what"] and fault["recoveredMs"] is not None for fault in report["faults"])
        if is_tried or report[count]:
            break
    assert (code, report["verdict"]) == (1, "failed")
    assert report[count] > 0
    assert any(words in finding for finding in report["findings"])


@pytest.mark.torture
@pytest.mark.parametrize(
    ("edits", "by", "count", "words"),
    [
        pytest.param(ACKNOWLEDGED, MARK, "doubled", "nothing was sent", id="acknowledged before the commit"),
        pytest.param(KEY, ATTEMPT, "doubled", "has the keys", id="a new key for each attempt"),
        pytest.param(RESCUE, ATTEMPT, "lost", "never ended", id="no rescue"),
        pytest.param(GAPS, STEP, "lost", "have no row", id="no row for a gap"),
    ],
)
def test_a_drill_fails_without_a_protection(
    tmp_path: Path, build: Callable[[Build], Path], edits: Build, by: str, count: str, words: str
) -> None:
    """One daemon on a SQLite file."""
    _is_caught(tmp_path / "home", build(edits), by=by, count=count, words=words)


@pytest.mark.torture
@pytest.mark.parametrize(
    ("edits", "by", "words"),
    [
        pytest.param(ACKNOWLEDGED_BY_SERVER, MARK, "nothing was sent", id="acknowledged before the commit"),
        pytest.param(KEY, ATTEMPT, "has the keys", id="a new key for each attempt"),
        # Only several daemons on one store need it: one that was frozen repeats what another has done.
        pytest.param(LEASE, FREEZE, "after attempt", id="no check of the lease"),
    ],
)
def test_a_drill_on_postgresql_fails_without_a_protection(
    tmp_path: Path, build: Callable[[Build], Path], server: Server, edits: Build, by: str, words: str
) -> None:
    """Two daemons: one continues what the other has left, and may not repeat what it has done."""
    store = ("--store", server.url)
    _is_caught(tmp_path / "home", build(edits), *store, by=by, count="doubled", words=words)
