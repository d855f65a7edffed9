"""kill -9 in the middle of a thousand due instants (L1, L2, L6, L7)."""

from collections import defaultdict
from pathlib import Path

import pytest

from processes.kit import Nursery, ask, count, is_alive, lines

pytestmark = pytest.mark.promise


@pytest.mark.torture
def test_a_kill_in_the_middle_of_a_thousand_instants(children: Nursery, tmp_path: Path) -> None:
    """After the restart every instant has its one run, none had a third attempt, and orphaned commands are gone."""
    database, done = tmp_path / "wakeful.db", tmp_path / "done"
    (tmp_path / "sleepy").touch()

    first = children.start("thousand.py")
    children.eventually(lambda: count(database, "outcome = 'succeeded'") >= 200 and _commands(done))
    children.kill(first)
    settled = count(database, "outcome = 'succeeded'")
    assert 200 <= settled < 960, "the kill was to be in the middle"
    orphans = [pid for _, _, pid in _commands(done)]
    assert any(is_alive(pid) for pid in orphans), "commands outlive the process that started them"
    held = count(database, "outcome = 'running'")
    (tmp_path / "sleepy").unlink()

    second = children.start("thousand.py")
    children.eventually(lambda: count(database, "outcome NOT IN ('running', 'waiting')") == 1000)

    assert ask(database, "SELECT outcome, count(*), count(DISTINCT schedule_id) FROM runs GROUP BY outcome") == [
        ("succeeded", 1000, 1000)
    ]
    assert ask(database, "SELECT max(attempt) FROM runs") == [(2,)]
    assert ask(database, "SELECT outcome, count(*) FROM attempts GROUP BY outcome") == [("crashed", held)]
    assert ask(database, "SELECT DISTINCT state FROM cadences") == [("done",)]

    attempts: dict[str, list[int]] = defaultdict(list)
    for key, attempt, *_ in lines(done):
        attempts[key].append(int(attempt))
    assert len(attempts) == 1000
    assert all(tried in ([1], [2], [1, 2]) for tried in attempts.values())
    assert len(lines(done)) - 1000 <= held
    assert not [pid for pid in orphans if is_alive(pid)]
    children.kill(second)


def _commands(done: Path) -> list[tuple[str, int, int]]:
    return [(words[0], int(words[1]), int(words[2])) for words in lines(done) if len(words) == 3]
