"""The order of measurements: groups of cases that are compared, in which ours and theirs alternate."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from bench.measures import GROWTH, MEASURES
from bench.sizes import Sizes
from bench.targets import Store

Environment: TypeAlias = Literal["ours", "peers"]

OURS = "wakeful"
LIMIT = "limit"
BARE_ROUTE = "fastapi, bare route"
HUEY_WORKERS = (1, 4)
CALLERS = 8  # threads that register with a peer that is used from threads
CONCURRENCY = ("--concurrency", "30")


@dataclass(frozen=True, slots=True)
class Case:
    """One process: a module of `bench`, run in its environment on a fresh store."""

    subject: str
    module: str
    options: tuple[str, ...] = ()
    fill: tuple[str, ...] = ()  # a module, and its options, that fills the store first

    @property
    def environment(self) -> Environment:
        return "ours" if self.subject in (OURS, LIMIT, BARE_ROUTE) else "peers"


@dataclass(frozen=True, slots=True)
class Group:
    """Cases that are compared. `measures` are reported as not available if Wakeful cannot run."""

    name: str
    store: Store
    repeats: int
    cases: tuple[Case, ...]
    measures: tuple[str, ...]


def plan(sizes: Sizes) -> list[Group]:
    """Everything, in order."""
    return [
        *(_burst(sizes, store) for store in _STORES),
        _recurring(sizes),
        *(_lanes(sizes, store) for store in _STORES),
        _nodes(sizes),
        *(_lateness(sizes, store) for store in _STORES),
        *(_lateness_of_many(sizes, store) for store in _STORES),
        *(_idle(sizes, store) for store in _STORES),
        *(_rest(sizes, store) for store in _STORES),
        *(_workflows(sizes, store) for store in _STORES),
        _simulation(sizes),
        *(_growth(sizes, store) for store in _STORES),
        _cron(sizes),
    ]


_STORES: tuple[Store, ...] = ("sqlite", "postgres")


def _burst(sizes: Sizes, store: Store) -> Group:
    is_sqlite = store == "sqlite"
    singles, fires = (sizes.singles, sizes.fires) if is_sqlite else (sizes.singles_postgres, sizes.fires_postgres)
    return Group(
        "burst",
        store,
        sizes.repeats,
        (
            Case(OURS, "ours.burst", _args(singles=singles, fires=fires)),
            Case(LIMIT, "ours.limit", _args(fires=fires)),
            *(
                Case(
                    f"apscheduler, {executor}",
                    "peers.apscheduler_burst",
                    _args(
                        executor=executor,
                        fires=sizes.fires_apscheduler,
                        seconds=sizes.register_seconds,
                        callers=callers,
                    ),
                )
                for executor, callers in (("threads", CALLERS), ("asyncio", 1))
            ),
            *(
                (
                    Case(
                        _huey(n),
                        "peers.huey_burst",
                        _args(
                            workers=n,
                            fires=sizes.fires_huey,
                            seconds=sizes.register_seconds,
                            callers=1 if n == 1 else CALLERS,
                        ),
                    )
                    for n in HUEY_WORKERS
                )
                if is_sqlite
                else (
                    Case(
                        "procrastinate",
                        "peers.procrastinate_burst",
                        (
                            *CONCURRENCY,
                            *_args(
                                singles=sizes.singles_postgres,
                                seconds=sizes.register_seconds,
                                fires=sizes.fires_procrastinate,
                            ),
                        ),
                    ),
                )
            ),
        ),
        ("fires", "registrations", "registrations in bulk"),
    )


def _recurring(sizes: Sizes) -> Group:
    measure = "fires, recurring"
    return Group(
        "recurring",
        "sqlite",
        sizes.lateness_repeats,
        (
            Case(OURS, "ours.burst", (*_args(measure=measure, fires=sizes.fires), "--recurring")),
            Case(
                "apscheduler, threads",
                "peers.apscheduler_burst",
                (
                    *_args(measure=measure, executor="threads"),
                    *_args(fires=sizes.fires_apscheduler, seconds=sizes.register_seconds),
                    "--recurring",
                ),
            ),
        ),
        (measure,),
    )


def _lanes(sizes: Sizes, store: Store) -> Group:
    own, shared = "fires, a lane each", "fires, 8 lanes"
    few = sizes.fires_in_shared_lanes
    theirs = (
        Case(
            "procrastinate",
            "peers.procrastinate_burst",
            (*CONCURRENCY, *_args(measure=shared, fires=min(few, sizes.fires_procrastinate), locks=8)),
        ),
    )
    return Group(
        "lanes",
        store,
        sizes.lateness_repeats,
        (
            Case(
                OURS,
                "ours.burst",
                _args(measure=own, fires=sizes.fires_in_lanes, lanes=sizes.fires_in_lanes),
            ),
            Case(OURS, "ours.burst", _args(measure=shared, fires=few, lanes=8)),
            *(theirs if store == "postgres" else ()),
        ),
        (own, shared),
    )


def _nodes(sizes: Sizes) -> Group:
    return Group(
        "nodes",
        "postgres",
        sizes.lateness_repeats,
        tuple(Case(OURS, "ours.nodes", _args(nodes=n, fires=sizes.fires_postgres)) for n in (1, 2, 4)),
        ("fires, 1 node", "fires, 2 nodes", "fires, 4 nodes"),
    )


def _lateness(sizes: Sizes, store: Store) -> Group:
    some = _args(jobs=50, seconds=sizes.lateness_seconds)
    return Group(
        "lateness",
        store,
        sizes.lateness_repeats,
        (
            Case(OURS, "ours.lateness", some),
            Case("apscheduler, threads", "peers.apscheduler_lateness", some),
            Case(_huey(HUEY_WORKERS[0]), "peers.huey_lateness", (*some, *_args(workers=HUEY_WORKERS[0])))
            if store == "sqlite"
            else Case("procrastinate", "peers.procrastinate_lateness", (*some, *CONCURRENCY)),
        ),
        ("lateness p50", "lateness p99"),
    )


def _lateness_of_many(sizes: Sizes, store: Store) -> Group:
    measure = "lateness at 1,000/s"
    options = (*_args(measure=measure, jobs=1_000, seconds=sizes.lateness_seconds), "--spread")
    return Group(
        "lateness at 1,000/s",
        store,
        sizes.lateness_repeats,
        (Case(OURS, "ours.lateness", options),),
        (f"{measure} p50", f"{measure} p99"),
    )


def _idle(sizes: Sizes, store: Store) -> Group:
    def case(subject: str, module: str, jobs: int, more: tuple[str, ...] = ()) -> Case:
        seconds = sizes.idle_seconds if subject == OURS else sizes.idle_seconds_peers
        watch = (*_args(jobs=jobs, seconds=seconds), *more)
        return Case(subject, f"{module}idle", watch, (f"{module}fill", *_args(jobs=jobs)))

    theirs = sizes.idle_jobs_peers
    return Group(
        "idle",
        store,
        1,
        (
            case(OURS, "ours.", sizes.idle_jobs),
            case("apscheduler, threads", "peers.apscheduler_", theirs),
            case(_huey(HUEY_WORKERS[0]), "peers.huey_", theirs, _args(workers=HUEY_WORKERS[0]))
            if store == "sqlite"
            else case("procrastinate", "peers.procrastinate_", theirs, CONCURRENCY),
        ),
        ("idle cpu", "idle rss", "start"),
    )


def _rest(sizes: Sizes, store: Store) -> Group:
    seconds = _args(seconds=sizes.rest_seconds)
    return Group(
        "rest",
        store,
        sizes.lateness_repeats,
        (Case(OURS, "ours.rest", seconds), Case(BARE_ROUTE, "ours.rest_bare", seconds)),
        (
            *(name for name in MEASURES if name.startswith("REST, ")),
            "lateness beside REST",
            "lateness beside manual runs",
        ),
    )


def _workflows(sizes: Sizes, store: Store) -> Group:
    return Group(
        "workflows",
        store,
        sizes.lateness_repeats,
        (Case(OURS, "ours.workflows", _args(messages=sizes.messages, idle=sizes.idle_workflows)),),
        ("workflow messages", "tick, idle workflows"),
    )


def _simulation(sizes: Sizes) -> Group:
    return Group(
        "simulation",
        "sqlite",
        sizes.lateness_repeats,
        (Case(OURS, "ours.simulation", _args(fires=sizes.simulated_fires)),),
        (
            "simulated fires",
            "simulated fires, half of them turns",
            "difference of a draft",
            "lateness beside a simulation",
        ),
    )


def _growth(sizes: Sizes, store: Store) -> Group:
    cases = [_args(name=f"{rows:,} rows", rows=rows) for rows in sizes.ledger_rows]
    cases += [_args(name="100,000 pending", pending=100_000), _args(name="1,300 connections", connections=1_300)]
    return Group(
        "growth",
        store,
        1,
        tuple(Case(OURS, "ours.growth", options) for options in cases),
        tuple(f"growth, {name}, {options[1]}" for options in cases for name in GROWTH),
    )


def _cron(sizes: Sizes) -> Group:
    options = _args(count=sizes.cron_steps)
    return Group(
        "cron",
        "none",
        sizes.cron_repeats,
        (
            Case(OURS, "ours.cron", options),
            Case("cronsim", "peers.cronsim_cron", options),
            Case("apscheduler", "peers.apscheduler_cron", options),
        ),
        ("next cron", "next cron, rare"),
    )


def _huey(workers: int) -> str:
    return f"huey, {workers} worker{'' if workers == 1 else 's'}"


def _args(**options: object) -> tuple[str, ...]:
    return tuple(word for name, value in options.items() for word in (f"--{name}", str(value)))
