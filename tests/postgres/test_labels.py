"""Three nodes in three processes with different labels; the only one with a label is killed."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import forking
from postgres.cluster import make_node, until
from postgres.server import Server
from wakeful.core.schedule.actions import Call
from wakeful.core.schedule.definition import Definition
from wakeful.core.schedule.labels import RunOn
from wakeful.core.time.timing import Once
from wakeful.ports.store import Tx

LABELS = {"a": "gpu", "b": "eu", "c": ""}
NEEDED: dict[str, RunOn] = {"gpu": "gpu", "either": ("eu", "gpu"), "any": None}
EACH = 60


@contextmanager
def _nodes(url: str, path: Path) -> Iterator[Callable[[str, str], forking.Process]]:
    """Starts nodes by name and labels, and ends them."""
    program = Path(__file__).with_name("node.py")
    errors = path.with_name("errors")
    started: list[forking.Process] = []
    with errors.open("wb") as heard:

        def start(name: str, labels: str) -> forking.Process:
            started.append(forking.start(program, url, name, path, labels, stdout=heard, stderr=heard))
            return started[-1]

        try:
            yield start
        finally:
            for process in started:
                process.kill()
                process.wait()
            print(errors.read_text()[-5_000:])


async def test_a_label_is_kept_when_its_only_node_is_killed(url: str, server: Server, tmp_path: Path) -> None:
    """Every run begins on a node that has its label. What needs the label of the dead node waits until a new node has
    it; what needs one of two labels, or none, goes on."""
    path = tmp_path / "effects"
    path.touch()
    writer = await make_node(url, "writer")

    def lines() -> list[list[str]]:
        return [line.split() for line in path.read_text().splitlines()]

    def ended(kind: str) -> set[str]:
        return {slug for word, slug, *_ in lines() if word == "end" and slug.startswith(kind)}

    async def up(count: int) -> None:
        async def are_up() -> bool:
            return sum(word == "up" for word, *_ in lines()) >= count

        await until(are_up)

    async def is_open(kind: str) -> int:
        def count(tx: Tx) -> int:
            rows = tx.schedules.page(after=None, limit=1_000, contains=kind)
            return sum(cadence.state != "done" for cadence in tx.cadences.lock([r.schedule_id for r in rows]).values())

        return await writer.store.read(count)

    async def none_left(kind: str) -> None:
        async def is_done() -> bool:
            return await is_open(kind) == 0

        await until(is_done)

    with _nodes(url, path) as start:
        first, *_ = [start(name, labels) for name, labels in LABELS.items()]
        await up(3)
        at = writer.now + 1_000
        target = Call("target", {})
        schedules = [
            Definition(f"{kind}-{n}", Once(at + 5 * n), target, run_on=needed, lane="car" if n % 10 == 0 else None)
            for kind, needed in NEEDED.items()
            for n in range(EACH)
        ]
        await writer.put(schedules)

        async def is_half_done() -> bool:
            return len(ended("gpu")) >= EACH // 4

        await until(is_half_done)
        first.kill()
        first.wait()
        await none_left("any")
        await none_left("either")
        waiting = await is_open("gpu")
        start("d", "gpu,big")
        await none_left("gpu")
    await writer.store.close()
    begun = [(slug.split("-")[0], node) for word, slug, _, node, _ in lines() if word == "begin"]
    where = Counter(begun)
    assert {node for kind, node in where if kind == "gpu"} <= {"a", "d"}
    assert {node for kind, node in where if kind == "either"} <= {"a", "b", "d"}
    assert waiting == 0 or where["gpu", "d"] > 0
    assert where["any", "c"] > 0
    assert {kind: len(ended(kind)) for kind in NEEDED} == dict.fromkeys(NEEDED, EACH)
