"""One function settles runs: equal endings together, the others run by run, with the same result."""

import ast
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

import wakeful
from features.kit import Bench, Bot, World, virtual
from sampling import sampled
from wakeful import every
from wakeful.core.run.results import DONE, Done, Ending, Failed
from wakeful.core.time.instants import HOUR, Instant
from wakeful.engine.claiming import claim
from wakeful.engine.settling import Ended, settle
from wakeful.ports.handlers import Alike, EngineHooks
from wakeful.ports.store import Tx

SOURCE: Final = Path(wakeful.__file__).parent
GROUPS: Final = 8
CASES: Final = 12
SECRET: Final = "hunter2-hunter2"
DUE: Final = HOUR


def _callers(tree: ast.AST, within: str = "") -> Iterator[tuple[str, str]]:
    """The statements that close runs, as `name of the function, statement`."""
    for node in ast.iter_child_nodes(tree):
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            noun, name = getattr(node.func.value, "attr", ""), node.func.attr
            if name == "close_many" or (noun, name) == ("plain", "settle"):
                yield within, f"{noun}.{name}"
        yield from _callers(node, node.name if is_function else within)  # type: ignore[attr-defined]


def test_the_statements_that_close_runs_have_one_caller_each() -> None:
    """A second way to settle would have to be kept equal to the first."""
    found = [
        (file.relative_to(SOURCE).as_posix(), *caller)
        for file in sorted(SOURCE.rglob("*.py"))
        for caller in _callers(ast.parse(file.read_text()))
    ]
    assert found == [
        ("engine/settling.py", "_settle_alike", "plain.settle"),
        ("engine/settling.py", "conclude_all", "runs.close_many"),
    ]


# --- both ways lead to the same --------------------------------------------------------------------------------------


class Undone(Exception):
    """Ends a transaction: nothing of it is kept."""

    def __init__(self, dump: dict[str, list[Any]], alike: int) -> None:
        self.dump = dump
        self.alike = alike  # how many runs were settled together


@pytest.mark.parametrize("group", sampled(range(GROUPS), every=GROUPS))
@virtual
async def test_equal_endings_settle_as_they_would_one_by_one(world: World, group: int) -> None:
    """Random endings of random schedules: texts, replies for people, costs, secrets, lanes, errors before."""
    app = await world.open(Bot(world), concurrency_max=500)
    rng = random.Random(group)
    for number in range(30):
        await app.add(f"job-{number}", every("1h"), **_options(rng))
    now = world.clock.read().now + DUE
    together = 0
    for _ in range(CASES):
        seed = rng.random()
        dumps = []
        for is_alike in (True, False):
            with pytest.raises(Undone) as undone:
                await app.store.write(lambda tx, seed=seed, alike=is_alike: _settle(app, tx, seed, now, alike))  # type: ignore[misc]
            dumps.append(undone.value.dump)
            together += undone.value.alike
        assert dumps[0] == dumps[1]
    assert together > CASES


def _options(rng: random.Random) -> dict[str, Any]:
    drawn: dict[str, Any] = {}
    if rng.random() < 0.4:
        drawn["deliver"] = rng.choice(({"channel": "inbox"}, [{"channel": "inbox", "to": "ann"}, {"channel": "last"}]))
    if rng.random() < 0.3:
        drawn["lane"] = rng.choice(("one", "two", "three"))
    if rng.random() < 0.3:
        drawn["on_crash"] = "unknown"
    if rng.random() < 0.3:
        drawn["retries"] = 2
    return drawn


def _draw_ending(rng: random.Random) -> Ending:
    text = rng.choice(("well", f"the key is {SECRET}", "", " \n", "HEARTBEAT_OK", "ü 'quoted' \"twice\""))
    usage = rng.choice((None, {"input": 5, "output": 7, "cost": 0.25}, {"prompt_tokens": 3}))
    drawn: list[Ending] = [
        DONE,
        Done(output=text),
        Done(reply=text, stderr="noise"),
        Done(output=text, usage=usage),
        Done(usage=usage),
        Done(output=text, refused=("tool",)),
        Failed(f"no: {SECRET}", usage=usage),
    ]
    return rng.choices(drawn, (8, 6, 2, 4, 1, 1, 2))[0]


def _settle(app: Bench, tx: Tx, seed: float, now: Instant, is_alike: bool) -> None:
    """Claim what is due, settle some of it, and undo all of that."""
    rng = random.Random(seed)
    hooks: EngineHooks = app.engine._hooks._replace(redact=lambda text: text.replace(SECRET, "***"))
    together: list[Alike] = []

    def alike(*given: Any) -> Alike:
        together.append(hooks.alike(*given) if is_alike else Alike())
        return together[-1]

    request = app.engine.claim_request(now, 100)
    assert request is not None
    request = request._replace(gap_reason="outage", is_ringing=True)
    claims = [one for one in claim(tx, hooks, request).claims if not isinstance(one.job, Failed)]
    ended = [Ended(one, _draw_ending(rng)) for one in rng.sample(claims, rng.randint(1, len(claims)))]
    for one, _ in rng.sample(ended, min(len(ended), 3)):
        _meddle(tx, rng, one.run_id, one.schedule_id)
    settled = settle(tx, hooks._replace(alike=alike), ended, node_id=request.node_id, now=now + 9)
    if settled.is_plain:
        tx.lanes.free_many(settled.lanes)
    raise Undone(_dump(tx, settled), sum(len(found.claims) for found in together))


def _meddle(tx: Tx, rng: random.Random, run_id: int, schedule_id: int) -> None:
    """Something else happened to a run or its schedule."""
    if rng.random() < 0.5:
        return
    cadence = tx.cadences.lock([schedule_id])[schedule_id]
    match rng.randrange(4):
        case 0:
            tx.cadences.save_many([cadence._replace(consecutive_errors=2, trouble=1)])
        case 1:
            tx.cadences.save_many([cadence._replace(state="paused")])
        case 2:
            tx.runs.save_many([tx.runs.lock([run_id])[run_id]._replace(fence=7)])
        case _:
            tx.runs.save_many([tx.runs.lock([run_id])[run_id]._replace(definition="{")])


def _dump(tx: Any, settled: Any) -> dict[str, list[Any]]:
    """Every table; deliveries without their ids, which follow the order in which runs are settled."""
    ask = tx.lanes._connection.execute
    tables = [name for (name,) in ask("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()]
    dump: dict[str, list[Any]] = {"counted": list(settled.counted), "alerts": sorted(map(str, settled.alerts))}
    for table in tables:
        columns = [row[1] for row in ask(f"PRAGMA table_info({table})").fetchall() if row[1] not in _ORDERED]
        dump[table] = sorted(map(repr, ask(f"SELECT {', '.join(columns)} FROM {table}").fetchall()))
    return dump


_ORDERED: Final = {"delivery_id", "item_id"}
