"""Replay one seed, and tell what happens in it: `python -m wakeful.simulation --seed N [--days D] [--nodes K]`."""

import argparse
import sys
import time

from wakeful.simulation.judge import Broken
from wakeful.simulation.replay import simulate


def main() -> int:
    """0: all laws held. 1: one was broken."""
    parser = argparse.ArgumentParser(prog="python -m wakeful.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, required=True, help="the world to replay")
    parser.add_argument("--days", type=float, help="how long; the seed decides if left out")
    parser.add_argument("--nodes", type=int, help="how many nodes; the seed decides if left out")
    parser.add_argument("--quiet", action="store_true", help="only say how it ended")
    chosen = parser.parse_args()
    say = None if chosen.quiet else _say
    began = time.perf_counter()
    try:
        report = simulate(chosen.seed, days=chosen.days, nodes=chosen.nodes, say=say)
    except Broken as broken:
        _say(f"\n{broken}")
        return 1
    _say(f"\nall laws held: {report}, in {time.perf_counter() - began:.1f} s")
    return 0


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    sys.exit(main())
