"""Run the benchmark, one process at a time, and compare Wakeful with the others: `make bench`, or `python -m bench`."""

import argparse
import json
import sys
import time
from pathlib import Path

from bench import machine, report
from bench.ours.probe import NOT_AVAILABLE
from bench.plan import OURS, Case, Group, plan
from bench.process import PEERS_PYTHON, ROOT, Ended, command, interpreter, run
from bench.results import Results, verdicts
from bench.sizes import FULL, QUICK
from bench.stores import Stores

LATEST = ROOT / "bench" / "results" / "latest.json"


class Runner:
    """Runs the plan."""

    def __init__(self, stores: Stores, groups: list[Group], limit: float) -> None:
        self._stores = stores
        self._groups = groups
        self._limit = limit
        self._results = Results()
        self._unable = self._probe()
        self._done = 0
        self._total = sum(group.repeats * len(group.cases) for group in groups)

    def work(self) -> Results:
        for group in self._groups:
            for repeat in range(group.repeats):
                for case in group.cases:
                    self._measure(group, case, repeat)
        return self._results

    def _measure(self, group: Group, case: Case, repeat: int) -> None:
        self._done += 1
        began = time.perf_counter()
        said = self._attempt(group, case, repeat)
        took = time.perf_counter() - began
        _say(
            f"[{self._done:>3}/{self._total}] {group.name:<20}{group.store:<9} {case.subject:<22}{took:6.1f} s  {said}"
        )

    def _attempt(self, group: Group, case: Case, repeat: int) -> str:
        why = self._why_not(group, case)
        address = None if why or group.store == "none" else self._stores.new(group.store)
        if why:
            return self._miss(group, case, why)
        ended = self._fill(case, address) or self._run(group, case, repeat, address)
        if address is not None:
            self._stores.discard(address)
        if ended.error:
            return self._miss(group, case, ended.error)
        for figure in ended.figures:
            if figure.measure in group.measures:
                self._results.add(group.store, case.subject, figure)
        return ", ".join(f"{f.measure} {f.value:,.4g}" for f in ended.figures)

    def _fill(self, case: Case, address: str | None) -> Ended | None:
        """Fill the store first if the case needs it; returns the result only if that failed."""
        if not case.fill or address is None:
            return None
        module, *options = case.fill
        ended = run(command(case.environment, module, "--store", address, *options), self._limit)
        return ended if ended.error else None

    def _run(self, group: Group, case: Case, repeat: int, address: str | None) -> Ended:
        where = () if address is None else ("--store", address)
        phase = ("--phase", f"{(repeat + 0.5) / group.repeats:.2f}") if group.name == "lateness" else ()
        phase = () if case.subject == OURS else phase
        return run(command(case.environment, case.module, *where, *case.options, *phase), self._limit)

    def _why_not(self, group: Group, case: Case) -> str:
        if group.store == "postgres" and self._stores.postgres is None:
            return self._stores.no_postgres
        return self._unable if group.store == "postgres" and case.subject == OURS else ""

    def _probe(self) -> str:
        """Why Wakeful cannot be measured on PostgreSQL; empty if it can."""
        address = self._stores.new("postgres")
        if address is None:
            return self._stores.no_postgres
        ended = run(command("ours", "ours.probe", "--store", address), self._limit)
        if ended.code == NOT_AVAILABLE:
            return "this version does not open PostgreSQL stores"
        return ended.error

    def _miss(self, group: Group, case: Case, why: str) -> str:
        named = [case.options[i + 1] for i, word in enumerate(case.options) if word == "--measure"]
        for measure in group.measures:
            if not named or measure.startswith(named[0]):
                self._results.miss(measure, group.store, case.subject, why)
        return f"not available: {why}"


def parser() -> argparse.ArgumentParser:
    """The options."""
    made = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    made.add_argument("--quick", action="store_true", help="a short run of less than three minutes")
    made.add_argument("--only", default="", help="only groups whose name contains this, e.g. burst or idle")
    made.add_argument("--json", type=Path, default=LATEST, help="file to write the figures to")
    made.add_argument("--folder", type=Path, help="folder for the stores, on the disk to measure")
    return made


def main() -> None:
    options = parser().parse_args()
    if not PEERS_PYTHON.exists():
        parser().error(f"{interpreter('peers')} does not exist; run make bench, which creates it")
    sizes = QUICK if options.quick else FULL
    groups = [group for group in plan(sizes) if options.only in group.name]
    if not groups:
        known = ", ".join(dict.fromkeys(group.name for group in plan(sizes)))
        parser().error(f"there is no group {options.only}; the groups are {known}")
    with Stores(options.folder) as stores:
        postgres = stores.postgres
        facts = machine.facts(stores.folder, postgres.version if postgres is not None else None)
        results = Runner(stores, groups, sizes.process_seconds).work()
        judged = [
            verdict for verdict in verdicts(results) if (verdict.target.measure, verdict.target.store) in results.values
        ]
        sys.stdout.write(report.table(results, judged, facts, sizes.note))
        sys.stdout.flush()  # cleaning up may take a while on a busy disk
        options.json.parent.mkdir(parents=True, exist_ok=True)
        written = report.as_json(results, judged, facts, sizes.note, is_quick=options.quick)
        options.json.write_text(json.dumps(written, indent=2) + "\n", encoding="utf-8")


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


if __name__ == "__main__":
    main()
