"""Replay one seed, and tell what happens in it: `python -m worlds --seed N [--days D] [--nodes K]`.

`--with outbox` lets only the outbox live there beside the schedules, `--with nobody` none: the rest is drawn the same.

With `--through M` all seeds from N to M, one after another, and only the sums are told; `--minutes` ends it earlier.
"""

import argparse
import sys
import time
from collections import Counter

from worlds.judge import Broken
from worlds.population import EVERYBODY
from worlds.replay import simulate
from worlds.world import Report

_EVERYBODY = ",".join(sorted(EVERYBODY))


def parser() -> argparse.ArgumentParser:
    """The options."""
    made = argparse.ArgumentParser(prog="python -m worlds", description=__doc__)
    made.add_argument("--seed", type=int, required=True, help="the world to replay")
    made.add_argument("--through", type=int, help="the last of many worlds")
    made.add_argument("--minutes", type=float, default=60, help="begin no further world after that long")
    made.add_argument("--days", type=float, help="how long; the seed decides if left out")
    made.add_argument("--nodes", type=int, help="how many nodes; the seed decides if left out")
    made.add_argument(
        "--with",
        dest="inhabitants",
        help=f"some of {_EVERYBODY}, or nobody; the seed decides if left out",
    )
    made.add_argument("--left-alone", action="store_true", help="nobody meddles with runs (`worlds.meddling`)")
    made.add_argument("--alike", action="store_true", help="many schedules are due together (`worlds.alike`)")
    made.add_argument("--quiet", action="store_true", help="only say how it ended")
    return made


def main() -> int:
    """0: all laws held. 1: one was broken."""
    options = parser()
    chosen = options.parse_args()
    inhabitants = _inhabitants(options, chosen.inhabitants)
    if chosen.through is not None:
        return _many(range(chosen.seed, chosen.through + 1), chosen.minutes, inhabitants)
    say = None if chosen.quiet else _say
    began = time.perf_counter()
    try:
        report = simulate(
            chosen.seed, days=chosen.days, nodes=chosen.nodes, inhabitants=inhabitants,
            is_left_alone=chosen.left_alone, has_alike=chosen.alike, say=say,
        )  # fmt: skip
    except Broken as broken:
        _say(f"\n{broken}")
        return 1
    _say(f"\nall laws held: {report}, in {time.perf_counter() - began:.1f} s")
    return 0


def _inhabitants(options: argparse.ArgumentParser, chosen: str | None) -> frozenset[str] | None:
    if chosen is None:
        return None
    named = frozenset(chosen.split(",")) - {"nobody"}
    if unknown := named - EVERYBODY:
        options.error(f"nobody is called {', '.join(sorted(unknown))}; write some of {_EVERYBODY}, or nobody")
    return named


def _many(seeds: range, minutes: float, inhabitants: frozenset[str] | None) -> int:
    """World after world; a broken one is named and the rest goes on."""
    began = time.perf_counter()
    reports: list[Report] = []
    broken: list[int] = []
    for seed in seeds:
        if time.perf_counter() - began > minutes * 60:
            break
        try:
            reports.append(simulate(seed, inhabitants=inhabitants, has_alike=seed % 3 == 2))
        except Broken as found:
            broken.append(seed)
            _say(f"{found}")
        if (seed - seeds.start) % 10 == 9:
            _say(_sums(reports, broken, time.perf_counter() - began))
    _say(_sums(reports, broken, time.perf_counter() - began))
    return 1 if broken else 0


def _sums(reports: list[Report], broken: list[int], seconds: float) -> str:
    if not reports:
        return f"no world held; broken: {broken}"
    outside: Counter[str] = Counter()
    for report in reports:
        outside.update(report.outside)
    return (
        f"seeds {reports[0].seed}..{reports[-1].seed}: {len(reports)} worlds, "
        f"{sum(report.days for report in reports):,.0f} days, "
        f"{sum(report.boots for report in reports):,} boots, {sum(report.crashes for report in reports):,} crashes, "
        f"{sum(report.commits for report in reports):,} commits judged, "
        f"{sum(report.rows for report in reports):,} rows, {sum(report.attempts for report in reports):,} attempts, "
        f"{''.join(f'{count:,} {what}, ' for what, count in outside.items())}"
        f"broken: {broken or 'none'}, {seconds / 60:.1f} min"
    )


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
