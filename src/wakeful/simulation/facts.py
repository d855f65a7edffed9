"""Facts about a store: which rows a commit touched, and what they say afterwards.

Theory of operation
-------------------
Reading the whole ledger after every commit would make years of simulated time unaffordable. So a `WatchedStore` stands
in front of the real one, and its transactions note the ids of what they write; what they mean by it is of no interest.
After the commit exactly these rows are *read back*, and only what the store then says is a fact. An operation that was
rolled back, or whose commit never happened, leaves ids that read back unchanged, and nothing follows from them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar, cast

from wakeful.core.cadence import Cadence
from wakeful.core.runs import Attempt, Run
from wakeful.ports.store import ALARM_RUN, ALARM_SCHEDULE, Alarm, Node, Schedule, Store, Tx

T = TypeVar("T")


class Facts(NamedTuple):
    """What the store says about everything a commit touched."""

    schedules: Mapping[int, Schedule]
    cadences: Mapping[int, Cadence]
    alarms: Mapping[int, Alarm]  # of the schedules above
    runs: Mapping[int, Run]
    gone: Sequence[int]  # touched runs that are no longer in the ledger
    attempts: Mapping[int, Sequence[Attempt]]
    holders: Mapping[str, int]
    queue: Sequence[Alarm]  # of waiting runs that have a lane
    nodes: Sequence[Node]


class Touched:
    """The ids that transactions wrote since they were last looked at."""

    __slots__ = ("nodes", "runs", "schedules")

    def __init__(self) -> None:
        self.runs: dict[int, None] = {}
        self.schedules: dict[int, None] = {}
        self.nodes = False

    def __bool__(self) -> bool:
        return bool(self.runs or self.schedules or self.nodes)

    def clear(self) -> None:
        self.runs.clear()
        self.schedules.clear()
        self.nodes = False


def read_facts(tx: Tx, touched: Touched, *, waiting: Iterable[int] = ()) -> Facts:
    """Read back what was touched. `waiting` are known runs that may be parked behind a lane."""
    run_ids = sorted(touched.runs)
    runs = tx.runs.lock(run_ids) if run_ids else {}
    schedule_ids = sorted({*touched.schedules, *(run.schedule_id for run in runs.values())})
    tried = [run.run_id for run in runs.values() if run.attempt > 1 or run.outcome == "waiting"]
    queued = sorted({*waiting, *(run.run_id for run in runs.values() if run.lane and run.outcome == "waiting")})
    alarms = tx.alarms.by_refs(ALARM_RUN, queued) if queued else {}
    return Facts(
        schedules=tx.schedules.by_ids(schedule_ids) if touched.schedules else {},
        cadences=tx.cadences.lock(schedule_ids) if schedule_ids else {},
        alarms=tx.alarms.by_refs(ALARM_SCHEDULE, schedule_ids) if schedule_ids else {},
        runs=runs,
        gone=[run_id for run_id in run_ids if run_id not in runs],
        attempts=tx.runs.attempts(tried) if tried else {},
        holders=tx.lanes.holders(),
        queue=list(alarms.values()),
        nodes=tx.nodes.all() if touched.nodes else (),
    )


class WatchedStore:
    """A store whose transactions note what they write."""

    def __init__(self, inner: Store, touched: Touched) -> None:
        self._inner = inner
        self._touched = touched
        self.read = inner.read
        self.hold_clock = inner.hold_clock
        self.release_clock = inner.release_clock
        self.changed = inner.changed
        self.close = inner.close

    @property
    def is_exclusive(self) -> bool:
        return self._inner.is_exclusive

    async def write(self, operation: Callable[[Tx], T]) -> T:
        return await self._inner.write(lambda tx: operation(_watched(tx, self._touched)))


class _WatchedTx:
    __slots__ = ("alarms", "cadences", "lanes", "meta", "nodes", "runs", "schedules")

    def __init__(self, tx: Tx, touched: Touched) -> None:
        self.schedules = _Watched(tx.schedules, touched, _SCHEDULES)
        self.cadences = _Watched(tx.cadences, touched, _CADENCES)
        self.alarms = _Watched(tx.alarms, touched, _ALARMS)
        self.runs = _Watched(tx.runs, touched, _RUNS)
        self.lanes = _Watched(tx.lanes, touched, _LANES)
        self.nodes = _Watched(tx.nodes, touched, _NODES)
        self.meta = tx.meta


class _Watched:
    """One noun of a transaction: calls that write pass by their note-taker first, all others go straight through."""

    __slots__ = ("_notes", "_nouns", "_touched")

    def __init__(self, nouns: Any, touched: Touched, notes: "Mapping[str, _Note]") -> None:
        self._nouns = nouns
        self._touched = touched
        self._notes = notes

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._nouns, name)
        note = self._notes.get(name)
        if note is None:
            return method
        touched = self._touched

        def noted(*args: Any, **options: Any) -> Any:
            answer = method(*args, **options)
            note(touched, args, answer)
            return answer

        return noted


_Note = Callable[[Touched, tuple[Any, ...], Any], None]


def _watched(tx: Tx, touched: Touched) -> Tx:
    return cast(Tx, _WatchedTx(tx, touched))


def _note_runs(touched: Touched, args: tuple[Any, ...], _: Any) -> None:
    for row in args[0]:
        touched.runs[row.run_id] = None


def _note_run_ids(touched: Touched, args: tuple[Any, ...], _: Any) -> None:
    touched.runs.update(dict.fromkeys(args[0]))


def _note_schedules(touched: Touched, args: tuple[Any, ...], _: Any) -> None:
    for row in args[0]:
        touched.schedules[row.schedule_id] = None


def _note_new_schedules(touched: Touched, _: tuple[Any, ...], answer: Any) -> None:
    touched.schedules.update(dict.fromkeys(found for found in answer if found is not None))


def _note_alarms(touched: Touched, args: tuple[Any, ...], _: Any) -> None:
    for alarm in args[0]:
        (touched.schedules if alarm.kind == ALARM_SCHEDULE else touched.runs)[alarm.ref] = None


def _note_alarm_refs(touched: Touched, args: tuple[Any, ...], _: Any) -> None:
    (touched.schedules if args[0] == ALARM_SCHEDULE else touched.runs).update(dict.fromkeys(args[1]))


def _note_lanes(touched: Touched, args: tuple[Any, ...], _: Any) -> None:
    for _lane, run_id in args[0]:
        touched.runs[run_id] = None


def _note_node(touched: Touched, _: tuple[Any, ...], __: Any) -> None:
    touched.nodes = True


def _note_voided(touched: Touched, args: tuple[Any, ...], _: Any) -> None:
    touched.nodes = touched.nodes or bool(args[0])


_SCHEDULES: Mapping[str, _Note] = {"add_many": _note_new_schedules, "save_many": _note_schedules}
_CADENCES: Mapping[str, _Note] = {"add_many": _note_schedules, "save_many": _note_schedules}
_ALARMS: Mapping[str, _Note] = {"set_many": _note_alarms, "remove_many": _note_alarm_refs}
_RUNS: Mapping[str, _Note] = {
    "add_many": _note_runs,
    "save_many": _note_runs,
    "mark_many": lambda touched, args, _: touched.runs.update(dict.fromkeys(mark.run_id for mark in args[1])),
    "add_attempts": _note_runs,
    "remove_many": _note_run_ids,
}
_LANES: Mapping[str, _Note] = {"take_many": _note_lanes, "free_many": _note_lanes}
_NODES: Mapping[str, _Note] = {"register": _note_node, "void": _note_voided}
