"""Explore the model: `python -m protocol [--large]`. `--broken NAME` shows what a variant without a protection does."""

import argparse
import sys
import time

from protocol.actions import Protocol
from protocol.bounds import LARGE, SMALL, SUFFICIENT
from protocol.broken import BROKEN
from protocol.explorer import explore, told


def main() -> int:
    """0: all laws hold in every state. 1: one does not."""
    variants = {variant.__name__: variant for variant in BROKEN}
    parser = argparse.ArgumentParser(prog="python -m protocol", description=__doc__)
    parser.add_argument("--large", action="store_true", help="larger bounds; half an hour")
    parser.add_argument("--broken", choices=variants, metavar="NAME", help=", ".join(variants))
    chosen = parser.parse_args()
    if chosen.broken is not None:
        return _explored(variants[chosen.broken](SUFFICIENT))
    return max([_explored(Protocol(bounds)) for bounds in (LARGE if chosen.large else SMALL)])


def _explored(protocol: Protocol) -> int:
    began = time.process_time()
    report = explore(protocol)
    if report.found is None:
        print(f"all laws hold in {report.states:,} states ({protocol.bounds}), {time.process_time() - began:.0f} s")
        return 0
    print(told(report.found, protocol))
    return 1


if __name__ == "__main__":
    sys.exit(main())
