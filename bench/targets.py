"""The targets.

Absolute figures were set on one machine (two cores, fast fsync) and say little about another; the ratios are measured
in the same run and carry over. A ratio is compared with the best setup of the peer.
"""

from typing import Final, Literal, NamedTuple, TypeAlias

Store: TypeAlias = Literal["sqlite", "postgres", "none"]


class Target(NamedTuple):
    """A lower bound where more is better, else an upper bound; a multiple of the peer's figure if a peer is named."""

    measure: str
    store: Store
    bound: float
    peer: str | None = None


STORES: Final[tuple[Store, ...]] = ("sqlite", "postgres")

# REST is compared with a bare FastAPI route under the same clients. 0.1 reached 0.13, 0.018, 0.037 and 0.0029 of its
# rate; the targets are three times as much.
TARGETS: Final = (
    Target("fires", "sqlite", 0.5, "limit"),
    Target("fires", "sqlite", 12, "apscheduler"),
    Target("fires", "sqlite", 20, "huey"),
    Target("fires", "postgres", 0.5, "limit"),
    Target("fires", "postgres", 8, "apscheduler"),
    Target("fires", "postgres", 30, "procrastinate"),
    Target("registrations", "sqlite", 40_000),
    Target("registrations", "postgres", 8_000),
    Target("registrations in bulk", "sqlite", 100_000),
    Target("registrations in bulk", "postgres", 30_000),
    Target("lateness at 1,000/s p99", "sqlite", 5),
    Target("lateness at 1,000/s p99", "postgres", 15),
    Target("idle cpu", "sqlite", 0.02),
    Target("idle rss", "sqlite", 80),
    Target("start", "sqlite", 1.5),
    Target("idle cpu", "postgres", 0.02),
    Target("idle rss", "postgres", 80),
    Target("start", "postgres", 1.5),
    Target("simulated fires", "sqlite", 10_000),
    Target("simulated fires, half of them turns", "sqlite", 10_000),
    Target("difference of a draft", "sqlite", 1),
    *(
        Target(measure, store, bound, "fastapi")
        for store in STORES
        for measure, bound in (
            ("REST, GET one", 0.39),
            ("REST, list of 50", 0.054),
            ("REST, PUT", 0.11),
            ("REST, timeline", 0.0088),
        )
    ),
    *(
        Target(measure, store, 100)
        for measure in ("lateness beside REST", "lateness beside manual runs")
        for store in STORES
    ),
    Target("next cron", "none", 1, "cronsim"),
    Target("next cron, rare", "none", 1, "cronsim"),
)
