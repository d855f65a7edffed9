"""The ledger of a real daemon against what a model server really answered, through failures and kill -9."""

import json
import os
import random
import signal
import sqlite3
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from access import HEADERS
from agents.model_server import Manner, ModelServer
from edges.http.kit import Daemon, daemon
from far_away import zone_at_noon
from patience import PATIENCE
from real_agents.house import serving

SETTINGS = """\
[schedules]
timezone = "{zone}"

[limits]
every_min = "1s"
agent_interval_min = "0s"
agent_lane = "parallel"

[agents.default]
adapter = "openai"
url = "{url}/v1"
model = "test-model"
tools = false

[prices.test-model]
input = 3
cached_input = 1
output = 10

[budgets]
day = {limit}
"""
NANO = 1_000_000_000
OFTEN = {
    "schedule": {"type": "every", "every": "1s"},
    "prompt": "work",
    "retry": {"times": 2, "delay": "1s"},
    "maxConsecutiveErrors": 1000,
}


class Paid(ModelServer):
    """Remembers for which key each answer was, fails sometimes, and can do something before it answers."""

    def __init__(self, rng: random.Random | None = None) -> None:
        super().__init__()
        self._rng = rng
        self.before_answer: Callable[[], None] = lambda: None

    async def _answer(self, request: Any, dialect: Any) -> Any:
        if self._rng is not None:
            manners: tuple[Manner, ...] = ("well", "500", "429", "400")
            self.manner = self._rng.choices(manners, (12, 2, 1, 1))[0]
        if self.manner == "well":
            self.before_answer()
        answered = await super()._answer(request, dialect)
        last = self.asked[-1]
        self.asked[-1] = last._replace(body={"key": request.headers["Idempotency-Key"]})
        return answered

    def served(self) -> Counter[str]:
        """The tokens of all answers, by key."""
        tokens: Counter[str] = Counter()
        for one in self.asked:
            if one.counted is not None:
                tokens[one.body["key"]] += sum(one.counted)
        return tokens


class Books:
    """What the database says once the daemon is down."""

    def __init__(self, home: Path) -> None:
        with closing(sqlite3.connect(home / "wakeful.db")) as store:
            ((self._store_id,),) = store.execute("SELECT value FROM meta WHERE name = 'store_id'").fetchall()
            rows = store.execute(
                """SELECT schedule_id, occurrence, c.tokens, c.cost, c.held_cost, c.settled_at, c.priced
                FROM charges AS c JOIN runs USING (run_id)"""
            ).fetchall()
            self.rows = rows
            self.budgets = store.execute("SELECT spent, reserved FROM budgets ORDER BY budget_id").fetchall()
        self.charged: Counter[str] = Counter()
        self.unknown: Counter[str] = Counter()
        for schedule_id, occurrence, tokens, *_ in rows:
            key = f"{self._store_id}-{schedule_id}-{occurrence}"
            self.charged[key] += tokens or 0
            self.unknown[key] += tokens is None

    def counted(self) -> int:
        """What budgets must have counted: costs, and reservations in place of those that are unknown."""
        return sum(held if cost is None else cost for _, _, _, cost, held, _, _ in self.rows)


@contextmanager
def paid(home: Path, server: Paid, limit: float) -> Iterator[Path]:
    home.mkdir(mode=0o700)
    with serving(server):
        (home / "wakeful.toml").write_text(SETTINGS.format(url=server.url, limit=limit, zone=zone_at_noon()))
        yield home


def ask(running: Daemon, method: str, path: str, body: Any = None) -> Any:

    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(running.address + path, data, HEADERS, method=method)
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return json.loads(answer.read())


def until(condition: Callable[[], object]) -> None:
    give_up_at = time.monotonic() + 4 * PATIENCE
    while not condition():
        assert time.monotonic() < give_up_at, "it never came true"
        time.sleep(0.05)


def killed_at(server: Paid, running: Daemon, count: int) -> None:
    """Kill the daemon while the server gives this answer, so that its report is lost."""

    def kill() -> None:
        if len(server.asked) >= count and running.process.poll() is None:
            os.kill(running.process.pid, signal.SIGKILL)

    server.before_answer = kill
    give_up_at = time.monotonic() + 4 * PATIENCE
    while running.process.poll() is None:
        assert time.monotonic() < give_up_at, f"{len(server.asked)} answers"
        time.sleep(0.05)
    server.before_answer = lambda: None


@pytest.mark.parametrize(
    ("turns", "kills"),
    [
        pytest.param(24, 2, id="24"),
        pytest.param(1_000, 9, id="1000", marks=[pytest.mark.torture, pytest.mark.timeout(1_800)]),
    ],
)
def test_the_ledger_says_what_the_model_server_counted(tmp_path: Path, turns: int, kills: int) -> None:
    """Retries, failures, resumed sessions and daemons that are killed while the model answers: every answer is charged
    once, with its tokens, unless its report was lost; then it is unknown, and its estimate is assumed."""
    server = Paid(random.Random(turns))
    with paid(tmp_path / "home", server, 500.0) as home:
        for number in range(kills):
            with daemon(home) as running:
                if number == 0:
                    for schedule in range(12):
                        session = {"persistSession": schedule % 3 > 0}
                        ask(running, "PUT", f"/api/schedule/s{schedule}", {**OFTEN, "sessionConfig": session})
                killed_at(server, running, turns * (number + 1) // (kills + 1))
        with daemon(home) as running:
            until(lambda: len(server.asked) >= turns)
            ask(running, "POST", "/api/pause", {})
            until(lambda: not ask(running, "GET", "/api/runs?outcome=running")["runs"])
            total = ask(running, "GET", "/api/cost?by=agent")["total"]
            (budget,) = ask(running, "GET", "/api/budget")["budgets"]
            assert running.end() == 0
        books, served = Books(home), server.served()
        assert all(settled is not None for *_, settled, _ in books.rows)
        assert kills <= books.unknown.total() <= 12 * kills
        assert all(held > 0 for _, _, tokens, _, held, _, _ in books.rows if tokens is None)
        for key in served.keys() | books.charged.keys():
            lost = served[key] - books.charged[key]
            assert lost == 0 if not books.unknown[key] else lost >= 0, key
        known = [key for key in served if not books.unknown[key]]
        assert sum(served[key] for key in known) == sum(books.charged[key] for key in known) > 0
        assert (total["tokens"], total["unknown"]) == (books.charged.total(), books.unknown.total())
        assert round((budget["spent"] + budget["assumed"]) * NANO) == books.counted() == books.budgets[-1][0]
        assert round(budget["spent"] * NANO) == sum(cost or 0 for _, _, _, cost, *_ in books.rows)
        assert budget["unknown"] == books.unknown.total()
        assert (budget["reserved"], books.budgets[-1][1]) == (0, 0)
        assert {priced for *_, cost, _, _, priced in books.rows if cost is not None} == {"table"}


def test_a_kill_between_the_answer_and_its_settlement_frees_no_money(tmp_path: Path) -> None:
    """The model has answered, the daemon is killed before it can write that down: the next one assumes that it
    cost its estimate, shows the cost as unknown, and starts nothing that no longer fits."""
    server = Paid()
    with paid(tmp_path / "home", server, 0.001) as home:
        body = {"schedule": {"type": "manual"}, "prompt": "work " * 100, "onCrash": "unknown"}
        with daemon(home) as running:
            ask(running, "PUT", "/api/schedule/report", body)
            first = ask(running, "POST", "/api/schedule/report/run?wait=true", {})
            assert first["outcome"] == "succeeded" and 0.0003 < first["cost"] < 0.0005
            server.before_answer = lambda: os.kill(running.process.pid, signal.SIGKILL)
            ask(running, "POST", "/api/schedule/report/run", {})
            assert running.process.wait(PATIENCE) == -signal.SIGKILL
        server.before_answer = lambda: None
        assert [one.counted is not None for one in server.asked] == [True, True]
        with daemon(home) as running:
            until(lambda: not ask(running, "GET", "/api/runs?outcome=running")["runs"])
            lost = ask(running, "GET", "/api/schedule/report/runs")["runs"][0]
            assert (lost["outcome"], lost["cost"]) == ("failed", None)
            (budget,) = ask(running, "GET", "/api/budget")["budgets"]
            assert (budget["reserved"], budget["spent"], budget["assumed"]) == (0, first["cost"], first["cost"])
            assert (budget["unknown"], budget["unknownOf"]) == (1, ["report"])
            assert ask(running, "GET", "/api/cost")["total"]["unknown"] == 1
            again = ask(running, "POST", "/api/schedule/report/run?wait=true", {})
            assert (again["outcome"], again["reason"]) == ("skipped", "budget")
            assert len(server.asked) == 2
