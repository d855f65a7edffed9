"""One claim: what starts runs is called from one place each, whatever brought the runs."""

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

import pytest

import wakeful

SOURCE: Final = Path(wakeful.__file__).parent

CALLERS: Final = {
    # Write runs that start: new ones of a batch, and ones that waited.
    "plain.start": {"engine.claim_steps._write"},
    "plain.claim": {"engine.claim_steps._write"},
    # Make the row of a run that starts.
    "core.run.transitions.claimed": {"engine.claim_steps._own"},
    "core.run.transitions.started": {"ports.claims.Claim.run"},
    # The steps before and after.
    "keepers.admit": {"engine.claim_steps._admit"},
    "lanes.take_many": {"engine.claim_steps._take_lanes"},
    "accounts.reserve": {"engine.claim_steps.reserve"},
    # All steps together: for what is due, and for what follows a run.
    "engine.claim_steps.claim_candidates": {"engine.claiming.claim", "engine.claiming.claim_next"},
    "engine.claim_steps.reserve": {"engine.claiming.claim", "engine.claiming.claim_next"},
    "engine.claiming.claim": {"engine.engine.Engine._claim", "engine.claiming_one_by_one.claim_one_by_one"},
    "engine.claiming.claim_next": {"engine.settling.settle_and_claim"},
}
"""What may be called from where: functions by their module, methods by the name of what they are called on."""

CHORES: Final = {
    "ports.handlers.SideTask": {"engine.chores.ChoreAlarms._claim"},
    "engine.chores.ChoreAlarms": {"app.bootstrap.assembling._handlers"},
    "_chore.begin": {"engine.chores.ChoreAlarms._look"},
    "_chore.end": {"engine.chores.ChoreAlarms._note"},
    "_chore.late": {"engine.chores.ChoreAlarms._note"},
    "_chore.clamp": {"engine.chores.ChoreAlarms.turn_back"},
}
"""The same for work that leaves no row in the ledger."""

CLAIM_COLUMNS: Final = {"claimed_until", "poll_until", "stats_until", "poll_fence"}
"""Where subjects of chores keep their claims; a subject that is given up gets another fence."""

INSERTED_BY_ENGINE: Final = {"engine.claim_steps._write"}
"""Features insert requests and gaps, which do not start at once. In the engine, only a claim inserts runs."""


@pytest.mark.parametrize("called", CALLERS)
def test_a_run_starts_in_one_place(called: str) -> None:
    """A second one would be a second claim, with rules of its own."""
    assert _callers()[called] == CALLERS[called]


@pytest.mark.parametrize("called", CHORES)
def test_a_chore_is_claimed_in_one_place(called: str) -> None:
    """A chore that makes side tasks itself would have a claim of its own."""
    assert _callers()[called] == CHORES[called]


def test_only_the_claim_of_a_chore_writes_its_columns() -> None:
    """They change in `save_claim`, which only the engine calls, and with the key of a slot."""
    writers = {caller for caller, name in _keywords() if name in CLAIM_COLUMNS}
    assert writers == {
        "core.slot.slot.with_key",
        "features.delivery.attempts.Attempts.save_claim",
        "features.quota.polls.Polls.save_claim",
        "features.quota.polls.Statistics.save_claim",
    }
    callers = _callers()["_chore.save_claim"]
    assert callers == {
        f"engine.chores.ChoreAlarms.{name}" for name in ("_claim", "_look", "_note", "recover", "turn_back")
    }


def test_the_engine_inserts_runs_in_one_place() -> None:
    """New runs are written by the claim that decides whether they start."""
    assert {caller for caller in _callers()["runs.add_many"] if caller.startswith("engine.")} == INSERTED_BY_ENGINE


@cache
def _callers() -> Mapping[str, set[str]]:
    """For everything that is called in the source, the functions that call it, or hand it on as `partial` does."""
    callers: defaultdict[str, set[str]] = defaultdict(set)
    for path in SOURCE.rglob("*.py"):
        module = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        tree = ast.parse(path.read_text("utf-8"))
        known = dict(_known(tree, module))
        for caller, called in _calls(tree, module):
            names = _names(called)
            callers[known.get(names[0], names[0]) if len(names) == 1 else ".".join(names[-2:])].add(caller)
    return callers


def _keywords() -> Iterator[tuple[str, str]]:
    """The columns that `_replace` changes, and the functions that do it."""
    for path in SOURCE.rglob("*.py"):
        module = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        yield from _replaced(ast.parse(path.read_text("utf-8")), module)


def _replaced(node: ast.AST, inside: str) -> Iterator[tuple[str, str]]:
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield from _replaced(child, f"{inside}.{name}")
                continue
            case ast.Call(func=ast.Attribute(attr="_replace"), keywords=keywords):
                yield from ((inside, keyword.arg) for keyword in keywords if keyword.arg is not None)
        yield from _replaced(child, inside)


def _known(tree: ast.Module, module: str) -> Iterator[tuple[str, str]]:
    """The functions of this module, and those it imports from others of ours, with their full names."""
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name):
                yield name, f"{module}.{name}"
            case ast.ImportFrom(module=str(origin), names=names) if origin.startswith("wakeful."):
                for alias in names:
                    yield alias.asname or alias.name, f"{origin.removeprefix('wakeful.')}.{alias.name}"


def _calls(node: ast.AST, inside: str) -> Iterator[tuple[str, ast.expr]]:
    """What is called below this node, and the function it is called in."""
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield from _calls(child, f"{inside}.{name}")
                continue
            case ast.Call(func=ast.Name(id="partial"), args=[called, *_]) | ast.Call(func=called):
                yield inside, called
        yield from _calls(child, inside)


def _names(node: ast.AST) -> list[str]:
    """`a.b[c].d` as a, b, d."""
    match node:
        case ast.Name(id=name):
            return [name]
        case ast.Attribute(value=value, attr=name):
            return [*_names(value), name]
        case ast.Subscript(value=value):
            return _names(value)
        case _:
            return ["?"]
