"""The table at the end of a run, and its JSON form."""

from collections.abc import Iterator, Mapping
from typing import Any

from bench.measures import MEASURES, Measure
from bench.plan import OURS
from bench.results import Results, Verdict
from bench.targets import Store

STORE_NAMES = {"sqlite": "SQLite", "postgres": "PostgreSQL", "none": ""}


def table(results: Results, verdicts: list[Verdict], machine: Mapping[str, Any], note: str) -> str:
    """The results as a table."""
    facts = ", ".join(f"{name} {value}" for name, value in machine.items())
    lines = [
        "",
        facts,
        note,
        "",
        f"{'measure':<40}{'subject':<24}{'median':>14}  {'range':<22}{'ours / theirs':>13}{'cpu µs':>10}",
    ]
    for (name, store), subjects in _ordered(results):
        lines += _rows(results, MEASURES[name], store, list(subjects))
    lines += ["", f"{'target':<58}{'bound':>14}{'reached':>14}"]
    lines += [_verdict_line(verdict) for verdict in verdicts]
    return "\n".join(lines) + "\n"


def as_json(
    results: Results, verdicts: list[Verdict], machine: Mapping[str, Any], note: str, *, is_quick: bool
) -> dict[str, Any]:
    """The results as JSON."""
    return {
        "quick": is_quick,
        "note": note,
        "machine": dict(machine),
        "measures": [
            {
                "measure": name,
                "store": store,
                "unit": MEASURES[name].unit,
                "better": MEASURES[name].better,
                "what": MEASURES[name].what,
                "subjects": {
                    subject: {
                        "median": results.value(name, store, subject),
                        "values": values,
                        "oursDividedByTheirs": None if subject == OURS else results.ratio(name, store, subject),
                        "facts": results.facts[(name, store, subject)],
                    }
                    for subject, values in subjects.items()
                },
                "notAvailable": _missing(results, name, store),
            }
            for (name, store), subjects in _ordered(results)
        ],
        "targets": [
            {
                "measure": verdict.target.measure,
                "store": verdict.target.store,
                "bound": verdict.target.bound,
                "timesPeer": verdict.target.peer,
                "reached": verdict.reached,
                "isReached": verdict.is_reached,
            }
            for verdict in verdicts
        ],
    }


def _ordered(results: Results) -> Iterator[tuple[tuple[str, Store], dict[str, list[float]]]]:
    """By measure, and SQLite before PostgreSQL."""
    for name in MEASURES:
        for store in STORE_NAMES:
            key: tuple[str, Store] = (name, store)  # type: ignore[assignment]  # the keys are the stores
            if key in results.values:
                yield key, results.values[key]


def _missing(results: Results, name: str, store: Store) -> dict[str, str]:
    return {subject: why for (of, at, subject), why in results.missing.items() if (of, at) == (name, store)}


def _rows(results: Results, measure: Measure, store: Store, subjects: list[str]) -> Iterator[str]:
    label = f"{measure.name} {STORE_NAMES[store]}".strip() + f" ({measure.unit})"
    for subject in sorted(subjects, key=lambda subject: subject != OURS):
        values = results.values[(measure.name, store)][subject]
        value, ratio = results.value(measure.name, store, subject), results.ratio(measure.name, store, subject)
        spread = f"{_figure(min(values))} to {_figure(max(values))}" if len(values) > 1 else ""
        versus = "" if subject == OURS or ratio is None else f"{ratio:.2f}x"
        cpu = results.facts[(measure.name, store, subject)].get("cpu_us")
        spent = _figure(float(cpu)) if cpu is not None else ""
        yield f"{label:<40}{subject:<24}{_figure(value):>14}  {spread:<22}{versus:>13}{spent:>10}"
        label = ""
    for subject, why in _missing(results, measure.name, store).items():
        yield f"{label:<40}{subject:<24}{'not available':>14}  {why}"
        label = ""


def _verdict_line(verdict: Verdict) -> str:
    target = verdict.target
    measure = MEASURES[target.measure]
    label = f"{target.measure} {STORE_NAMES[target.store]}".strip()
    words = "at least" if measure.better == "more" else "under"
    unit = f" times {target.peer}" if target.peer else measure.unit
    bound = f"{words} {_figure(target.bound)}{'' if target.peer else ' '}{unit}".replace(" /s", "/s")
    said = {True: "reached", False: "NOT REACHED", None: ""}[verdict.is_reached]
    return f"{label:<36}{bound:>36}{_figure(verdict.reached):>14}  {said}"


def _figure(value: float | None) -> str:
    """Three significant digits."""
    if value is None:
        return "not available"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
