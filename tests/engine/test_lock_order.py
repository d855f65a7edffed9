"""The order in which things are held (L6): what runs belong to, of all kinds, then runs, then lanes."""

from collections.abc import Sequence
from typing import Any

from conformance.rows import a_claim, running
from wakeful.core.run.results import Done, Ending
from wakeful.core.run.runs import Run
from wakeful.core.run.settlement import Close
from wakeful.core.time.instants import Instant
from wakeful.engine.settling import Ended, settle
from wakeful.ports.handlers import EngineHooks, Settled


class Notes:
    """A transaction that only writes down, in order, what is asked of it."""

    def __init__(self, said: list[str], noun: str = "") -> None:
        self._said = said
        self._noun = noun

    def __getattr__(self, name: str) -> Any:
        if not self._noun:
            return Notes(self._said, name)

        def ask(*given: Any, **_: Any) -> Any:
            self._said.append(f"{self._noun}.{name}")
            return {run_id: running(run_id, 1, **_of(run_id)) for run_id in given[1]} if name == "held" else None

        return ask


def _of(n: int) -> dict[str, Any]:
    return {"kind": "workflow" if n % 2 else "schedule", "lane": f"lane-{n}"}


class Keeper:
    """Closes every run, and says when it is asked for what."""

    def __init__(self, kind: str, said: list[str]) -> None:
        self.kind = kind
        self._said = said

    def lock(self, tx: Any, runs: Sequence[Run]) -> None:
        self._said.append(f"lock {self.kind} x{len(runs)}")

    def settle(self, tx: Any, locked: None, ended: Sequence[tuple[Run, Ending]], *, now: Instant) -> list[Settled]:
        self._said.append(f"settle {self.kind} x{len(ended)}")
        return [Settled(Close("succeeded", "finished")) for _ in ended]


def test_settling_several_kinds_holds_lanes_last() -> None:
    """However the kinds of the batch are mixed: two nodes that settle at once never wait in a circle."""
    said: list[str] = []
    keepers: Any = {kind: Keeper(kind, said) for kind in ("workflow", "schedule")}
    hooks = EngineHooks((), keepers, {}, {}, None)  # type: ignore[arg-type]  # nothing is left behind here
    runs = [running(n, 1, **_of(n)) for n in range(1, 6)]
    concluded = settle(Notes(said), hooks, [Ended(a_claim(run), Done()) for run in runs], node_id=1, now=5)  # type: ignore[arg-type]  # asked by name only
    assert concluded.counted == [True] * 5
    assert said == [
        "lock schedule x2",
        "lock workflow x3",
        "runs.held",
        "settle schedule x2",
        "settle workflow x3",
        "runs.close_many",
        "lanes.free_many",
    ]
