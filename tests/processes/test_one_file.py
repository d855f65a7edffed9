"""Several processes on one SQLite file (L2, L6): one ticks, the others add and read, and take over."""

from collections import Counter
from pathlib import Path

import pytest

from processes.kit import Nursery, ask, count, lines

pytestmark = pytest.mark.promise

FAILED = "SELECT outcome, reason, error FROM runs WHERE outcome IN ('failed', 'unknown', 'timedOut')"
OPEN = "('running', 'waiting')"
NAMES = ("ada", "bob", "cyd")
SLUGS = {"shared", "of-ada", "of-bob", "of-cyd"}


def test_one_ticks_the_others_add_and_read_and_one_takes_over(children: Nursery, tmp_path: Path) -> None:
    """Three workers; the ticking one is killed, then the next; none of their runs is doubled or lost."""
    database, done = tmp_path / "wakeful.db", tmp_path / "done"
    workers = {name: children.start("worker.py", name) for name in NAMES}
    children.eventually(lambda: {words[1] for words in lines(done)} == SLUGS)  # the ticker runs what the others added
    children.eventually(lambda: all(_says(tmp_path, name)[1:] == sorted(SLUGS) for name in NAMES))
    assert sorted(_says(tmp_path, name)[0] for name in NAMES) == ["0", "0", "1"]

    order = []
    while len(workers) > 1:
        before = len(lines(done))
        ticker = lines(done)[-1][0]
        order.append(ticker)
        children.kill(workers.pop(ticker))
        children.eventually(lambda before=before, ticker=ticker: _others_since(done, before, ticker))
        ((last,),) = ask(database, "SELECT max(run_id) FROM runs")  # a second kill would cost them their second attempt
        children.eventually(lambda last=last: count(database, f"run_id <= {last} AND outcome IN {OPEN}") == 0)
    assert len(set(order)) == 2

    runs = Counter((key, attempt) for _, _, key, attempt in lines(done))
    assert set(runs.values()) == {1}, "no attempt is made twice"
    assert ask(database, "SELECT max(attempt) <= 2 FROM runs") == [(1,)]
    assert ask(database, FAILED) == []
    assert ask(database, "SELECT count(*) FROM nodes WHERE voided_at IS NULL") == [(1,)]
    assert ask(database, "SELECT slug, version FROM schedules ORDER BY slug") == [(s, 1) for s in sorted(SLUGS)]


def test_starting_again_and_again_is_harmless(children: Nursery, tmp_path: Path) -> None:
    """Each start registers the same schedules: no second one, no new version, the grid stays."""
    database = tmp_path / "wakeful.db"
    anchors = set()
    for _ in range(3):
        worker = children.start("worker.py", "ada")
        children.eventually(lambda: _says(tmp_path, "ada")[1:] == ["of-ada", "shared"])
        children.kill(worker)
        (tmp_path / "seen-ada").unlink()
        anchors.add(ask(database, "SELECT definition FROM schedules WHERE slug = 'shared'")[0][0])
    assert ask(database, "SELECT slug, version FROM schedules ORDER BY slug") == [("of-ada", 1), ("shared", 1)]
    assert len(anchors) == 1


def _says(folder: Path, name: str) -> list[str]:
    """Whether it ticks, and the schedules it sees."""
    seen = folder / f"seen-{name}"
    return seen.read_text().split() if seen.exists() else []


def _others_since(done: Path, before: int, ticker: str) -> bool:
    return any(name != ticker for name, *_ in lines(done)[before:])
