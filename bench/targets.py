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


TARGETS: Final = (
    Target("fires", "sqlite", 25_000),
    Target("fires", "sqlite", 30, "apscheduler"),
    Target("fires", "sqlite", 10, "huey"),
    Target("fires", "postgres", 10_000),
    Target("fires", "postgres", 7, "apscheduler"),
    Target("fires", "postgres", 25, "procrastinate"),
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
    Target("next cron", "none", 1, "cronsim"),
    Target("next cron, rare", "none", 1, "cronsim"),
)
