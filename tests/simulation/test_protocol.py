"""The model of the protocol (`protocol`): the laws hold in every state, and notice each protection that is missing."""

import re
from functools import reduce
from importlib import import_module

import pytest

from protocol.actions import FUNCTIONS, WORLD, Action, Protocol
from protocol.bounds import LARGE, SMALL, SUFFICIENT
from protocol.broken import BROKEN
from protocol.explorer import Found, explore, told
from protocol.state import Bounds


def test_the_laws_hold_in_every_state() -> None:
    """Two nodes, crashes, freezes of any length and steps of the clock: L1, L2, L5 and L6 hold. Every action happens,
    because a model in which something cannot happen proves nothing about it."""
    happened: set[str] = set()
    for protocol in map(Protocol, SMALL):
        report = explore(protocol)
        assert report.found is None, told(report.found, protocol)
        happened |= report.actions
    assert happened == {*FUNCTIONS, *WORLD}


@pytest.mark.torture
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("bounds", LARGE, ids=str)
def test_the_laws_hold_within_larger_bounds(bounds: Bounds) -> None:
    """More crashes, more instants, longer leases."""
    report = explore(Protocol(bounds))
    assert report.found is None, told(report.found, Protocol(bounds))


@pytest.mark.parametrize("variant", BROKEN, ids=lambda variant: variant.__name__)
def test_a_missing_protection_is_found(variant: type[Protocol]) -> None:
    """Without it a law is broken, and the way there can be read."""
    protocol = variant(SUFFICIENT)
    found = explore(protocol).found
    assert found is not None
    assert len(found.trace) <= 12
    assert told(found, protocol).endswith(found.law)


def test_a_trace_names_the_functions_of_the_code() -> None:
    """So that it can be followed there."""
    trace = [Action("enter", 0), Action("claim", 1, 0), Action("time passes")]
    lines = told(Found("L2: …", trace), Protocol(Bounds())).splitlines()
    assert [line.split() for line in lines[:3]] == [
        ["1.", "A:", "enter", FUNCTIONS["enter"]],
        ["2.", "B:", "claim", "call", "1", FUNCTIONS["claim"]],
        ["3.", "time", "passes"],
    ]


@pytest.mark.parametrize("path", FUNCTIONS.values())
def test_each_action_is_a_function_of_the_code(path: str) -> None:
    """Renaming one renames the action."""
    module, *names = re.split(r"\.(?=[A-Z])|\.(?=\w+$)", path)
    assert callable(reduce(getattr, names, import_module(module)))
