"""Retries: how long apart, and after which exceptions."""

from itertools import pairwise
from typing import Any

import pytest

from wakeful.core.errors import Invalid
from wakeful.core.exception_names import exception_name
from wakeful.core.schedule.definition_json import definition_from_json, definition_to_json, encode_definition
from wakeful.core.schedule.policies import Retry, retry_at
from wakeful.core.time.instants import DAY, HOUR, MINUTE, SECOND

CALL = {"schedule": {"type": "every", "every": "1h"}, "call": {"target": "shop:order"}}


def read(retry: Any, **action: Any) -> Any:
    data = {"schedule": CALL["schedule"], **(action or {"call": CALL["call"]}), "retry": retry}
    return definition_from_json(data, default_zone="UTC", slug="order")


def test_without_a_backoff_all_delays_are_alike() -> None:
    """As before there was one, also with delays beyond a day."""
    retry = Retry(5, 2 * DAY)
    assert [retry.delay_after(n) for n in range(1, 5)] == [2 * DAY] * 4


def test_delays_grow_up_to_the_longest() -> None:
    retry = Retry(None, 10 * SECOND, backoff=2, delay_max=MINUTE)
    assert [retry.delay_after(n) // SECOND for n in range(1, 6)] == [10, 20, 40, 60, 60]


def test_a_backoff_without_end_is_capped_at_a_day() -> None:
    """And no number of attempts makes it overflow."""
    retry = Retry(None, SECOND, backoff=10)
    delays = [retry.delay_after(n) for n in (1, 5, 6, 1_000_000)]
    assert delays == [SECOND, 10_000 * SECOND, DAY, DAY]
    assert all(before <= after for before, after in pairwise(delays))


def test_until_the_next_instant_still_ends_there() -> None:
    """A delay that has grown past it gives up."""
    retry = Retry(None, 10 * MINUTE, backoff=2)
    assert retry_at(retry, attempts_failed=1, now=0, next_due_at=HOUR) == 10 * MINUTE
    assert retry_at(retry, attempts_failed=4, now=0, next_due_at=HOUR) is None


@pytest.mark.parametrize(
    ("retry", "raised", "is_covered"),
    [
        (Retry(1, 1), ("ValueError", "Exception"), True),
        (Retry(1, 1), (), True),
        (Retry(1, 1, on=("OSError",)), ("ConnectionError", "OSError", "Exception"), True),
        (Retry(1, 1, on=("OSError",)), ("ValueError", "Exception"), False),
        (Retry(1, 1, on=("OSError",)), (), False),
        (Retry(1, 1, give_up_on=("ValueError",)), ("KeyError", "LookupError"), True),
        (Retry(1, 1, give_up_on=("LookupError",)), ("KeyError", "LookupError"), False),
        (Retry(1, 1, on=("OSError",), give_up_on=("PermissionError",)), ("PermissionError", "OSError"), False),
    ],
)
def test_exceptions_count_as_all_they_inherit_from(retry: Retry, raised: tuple[str, ...], is_covered: bool) -> None:
    assert retry.covers(raised) is is_covered


def test_names_of_exceptions() -> None:
    assert exception_name(ConnectionError) == "ConnectionError"
    assert exception_name(Invalid) == "wakeful.core.errors.Invalid"


def test_a_definition_reads_back_as_it_was_written() -> None:
    """And one without the new fields is the text it was before."""
    written = {
        "times": 4,
        "delay": "10s",
        "backoff": 2,
        "delayMax": "1h",
        "on": ["ConnectionError", "httpx.HTTPError"],
        "giveUpOn": ["PermissionError"],
    }
    definition = read(written)
    assert definition.retry == Retry(4, 10_000, 2, HOUR, ("ConnectionError", "httpx.HTTPError"), ("PermissionError",))
    assert definition_to_json(definition, full=True)["retry"] == written
    assert encode_definition(read({"times": 2, "delay": "1m"})).endswith('"retry":{"times":2,"delay":"1m"}}')


@pytest.mark.parametrize(
    ("retry", "field", "part"),
    [
        ({"backoff": 0}, "retry.backoff", "at least 1"),
        ({"backoff": 11}, "retry.backoff", "at most 10"),
        ({"backoff": 1.5}, "retry.backoff", "whole number"),
        ({"delay": "2h", "delayMax": "1h"}, "retry.delayMax", "shorter than the delay"),
        ({"on": []}, "retry.on", "list of 1 to 20"),
        ({"on": "ConnectionError"}, "retry.on", "list of 1 to 20"),
        ({"on": ["ConectionError"]}, "retry.on", "not a built-in exception"),
        ({"on": ["print"]}, "retry.on", "not a built-in exception"),
        ({"giveUpOn": ["a b"]}, "retry.giveUpOn", "not the name of an exception"),
        ({"giveUpOn": [7]}, "retry.giveUpOn", "not the name of an exception"),
        ({"retryOn": ["OSError"]}, "retry.retryOn", "unknown field"),
    ],
)
def test_what_cannot_be_is_refused(retry: dict[str, Any], field: str, part: str) -> None:
    with pytest.raises(Invalid) as refused:
        read(retry)
    assert [(error.field, part in error.message) for error in refused.value.errors] == [(field, True)]


def test_only_calls_raise_exceptions() -> None:
    with pytest.raises(Invalid, match="which only a call raises"):
        read({"on": ["OSError"]}, command={"argv": ["true"]})
