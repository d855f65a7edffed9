"""Providers against a real server on loopback that behaves like the real one, key by key."""

import json
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from features.quota_kit import Account, Served, quota_server
from wakeful.config.one_slot import read_slot
from wakeful.core.slot.slot import ReadFailure, Reading
from wakeful.core.time.instants import HOUR, MINUTE
from wakeful.engine.clock import SystemClock
from wakeful.integrations.providers import glm
from wakeful.integrations.providers.from_settings import make_provider
from wakeful.integrations.providers.reading import glm_reading, instant_of, plain_reading
from wakeful.ports.action import Fire
from wakeful.ports.exchange import ExchangeStep, RequestContext
from wakeful.ports.quota import QuotaProvider

CLOCK = SystemClock()
KEY = "sk-0123456789abcdef"
FIRE = Fire(1, -1, "slot:main", 0, 0, "wake", 1, "key-1", None)

SEED = {
    "limits": [
        {
            "type": "TIME_LIMIT",
            "unit": 5,
            "number": 1,
            "usage": 1000,
            "currentValue": 10,
            "remaining": 990,
            "nextResetTime": 1772259238997,
            "usageDetails": [{"modelCode": "search-prime", "usage": 0}],
        },
        {"type": "TOKENS_LIMIT", "unit": 3, "number": 5, "percentage": 7, "nextResetTime": 1771177008218},
    ]
}


def now() -> int:
    return CLOCK.read().now


class Ears:
    """Hears of exchanges, as the log does."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str, str | None, dict[str, Any]]] = []

    def __call__(self, about: RequestContext) -> ExchangeStep:
        return lambda phase, details: self.lines.append((about.action, phase, about.slot, dict(details)))


class NoLadder:
    async def climb(self, rung: Any, *, process: Any = None) -> None: ...


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    async with quota_server({KEY: Account(now)}) as one:
        yield one


def provider(base: str, data: Mapping[str, Any] | None = None, *, ears: Ears | None = None) -> QuotaProvider:
    slot = read_slot("main", {"apiKey": KEY, "baseUrl": base, **(data or {})}, home=Path("/"))
    return make_provider("main", slot, clock=CLOCK, home=Path("/"), zone="UTC", listener=ears)


async def read(one: QuotaProvider) -> Reading | ReadFailure:
    try:
        return await one.read("background-quota-poll")
    finally:
        await one.close()


def test_the_example_of_the_seed_is_read() -> None:
    """The tokens limit is picked although the monthly one stands first."""
    found = glm_reading({"code": 200, "data": SEED}, 1771160000000)
    assert isinstance(found, Reading)
    assert (found.percentage, found.reset_at, found.window) == (7, 1771177008218, 5 * HOUR)
    assert found.limits == tuple(SEED["limits"])


async def test_cold_then_woken_then_warm(served: Served) -> None:
    """A key goes warm for a while after a wake; each exchange is heard under its documented names, without the key."""
    ears = Ears()
    one = provider(served.url, ears=ears)
    cold = await one.read("background-quota-poll")
    assert isinstance(cold, Reading)
    assert (cold.reset_at, cold.level) == (None, "pro")
    assert await one.wake("scheduled-wake", FIRE, NoLadder()) is None
    warm = await one.read("background-quota-poll")
    await one.close()
    assert isinstance(warm, Reading)
    assert warm.reset_at is not None
    assert abs(warm.reset_at - now() - 5 * HOUR) < MINUTE
    assert [(action, phase, slot) for action, phase, slot, _ in ears.lines] == [
        ("background-quota-poll", "request", "main"),
        ("background-quota-poll", "response", "main"),
        ("scheduled-wake", "request", "main"),
        ("scheduled-wake", "response", "main"),
        ("background-quota-poll", "request", "main"),
        ("background-quota-poll", "response", "main"),
    ]
    assert KEY not in str(ears.lines)


async def test_what_is_sent(served: Served) -> None:
    """Paths, headers and the smallest of requests, as the protocol has them."""
    one = provider(served.url)
    await one.read("x")
    await one.wake("x", FIRE, NoLadder())
    await one.close()
    (get, quota_path, headers), (post, wake_path, wake_headers) = served.heard
    assert (get, quota_path) == ("GET", "/api/monitor/usage/quota/limit")
    assert (post, wake_path) == ("POST", "/api/coding/paas/v4/chat/completions")
    for sent in (headers, wake_headers):
        assert sent["authorization"] == f"Bearer {KEY}"
        assert (sent["accept-language"], sent["content-type"]) == ("en-US", "application/json")
    assert served.account(KEY).keys == ["key-1"]


async def test_a_key_written_with_bearer_is_sent_as_it_is(served: Served) -> None:
    """Not twice."""
    found = await read(provider(served.url, {"apiKey": f"Bearer {KEY}"}))
    assert isinstance(found, Reading)


@pytest.mark.parametrize(
    ("mood", "kind", "words"),
    [
        ("down", "unreachable", "HTTP 500"),
        ("refused", "refused", "the key was refused"),
        ("broken", "unreadable", "not JSON"),
        ("empty", "unreadable", "no limit"),
        ("far", "unreadable", "nextResetTime is implausible"),
    ],
)
async def test_what_goes_wrong_is_one_clear_sentence(served: Served, mood: str, kind: str, words: str) -> None:
    """Of the right kind, because a refused key is not woken and an unreadable quota is."""
    served.account(KEY).mood = mood
    found = await read(provider(served.url))
    assert isinstance(found, ReadFailure)
    assert found.kind == kind
    assert words in found.error
    assert "\n" not in found.error


async def test_a_provider_that_quotes_the_key_does_not_get_it_printed(served: Served) -> None:
    """Unknown keys are named in its answer; ours is masked."""
    other = "sk-another-key-nobody-knows"
    found = await read(provider(served.url, {"apiKey": other}))
    assert isinstance(found, ReadFailure)
    assert found.kind == "refused"
    assert other not in found.error
    assert "••••" in found.error


async def test_nobody_there() -> None:
    """Connection refused, in words."""
    found = await read(provider("http://127.0.0.1:9"))
    assert isinstance(found, ReadFailure)
    assert (found.kind, "connection refused" in found.error) == ("unreachable", True)


async def test_a_slow_answer_is_given_up(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """After its time, and nothing is left behind."""
    monkeypatch.setattr(glm, "TOTAL", 200)
    served.account(KEY).mood = "slow"
    found = await read(provider(served.url))
    assert isinstance(found, ReadFailure)
    assert (found.kind, "no answer within" in found.error) == ("unreachable", True)


async def test_a_throttled_wake_says_when_to_come_back(served: Served) -> None:
    """429 is a failed send, in the provider's words."""
    served.account(KEY).wake_mood = "throttled"
    one = provider(served.url)
    failure = await one.wake("scheduled-wake", FIRE, NoLadder())
    await one.close()
    assert failure is not None
    assert "too many requests" in failure.error


async def test_other_limit_types_first_or_last(served: Served) -> None:
    """The order of the answer means nothing."""
    account = served.account(KEY)
    account.warm("2h")
    for first in (True, False):
        account.months_first = first
        found = await read(provider(served.url))
        assert isinstance(found, Reading)
        assert found.reset_at == account.reset_at


async def test_statistics(served: Served) -> None:
    """Calls and tokens of the day and of the window, tools; times are local and url-encoded."""
    one = provider(served.url)
    told = await one.statistics(Reading(7, now() + HOUR), now=now())
    await one.close()
    assert not isinstance(told, ReadFailure)
    assert told["day"] == {"calls": 12, "tokens": 3400}
    assert told["tools"]["networkSearch"] == 2
    paths = [path for _, path, _ in served.heard]
    assert [path.partition("?")[0].rpartition("/")[2] for path in paths] == ["model-usage", "model-usage", "tool-usage"]
    assert all("startTime=20" in path and " " not in path for path in paths)


@pytest.mark.parametrize(
    "broken",
    [
        None,
        [],
        "x",
        {"code": 200},
        {"code": 200, "data": None},
        {"code": 200, "data": {"limits": None}},
        {"code": 200, "data": {"limits": ["x", None, 5]}},
        {"code": 500, "msg": "busy"},
        {"code": "401", "msg": "no"},
        {"code": 200, "data": {"limits": [{"type": "TOKENS_LIMIT", "nextResetTime": "soon"}]}},
        {"code": 200, "data": {"limits": [{"type": "TOKENS_LIMIT", "nextResetTime": [1]}]}},
        {"code": 200, "data": {"limits": [{"type": "TOKENS_LIMIT", "nextResetTime": 1e300}]}},
        {"code": 200, "data": {"limits": [{"type": "TOKENS_LIMIT", "nextResetTime": -5}]}},
    ],
)
def test_any_json_is_read_or_refused_in_words(broken: Any) -> None:
    """Nothing a provider answers raises."""
    found = glm_reading(broken, now())
    assert isinstance(found, ReadFailure)
    assert found.error


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (1771177008218, 1771177008218),
        (1771177008, 1771177008000),
        ("1771177008218", 1771177008218),
        ("2026-02-15T17:36:48.218Z", 1771177008218),
        (None, None),
        ("", None),
    ],
)
def test_times_in_any_usual_form(told: Any, expected: int | None) -> None:
    """Milliseconds, seconds, texts."""
    assert instant_of(told) == expected


def test_paths_into_any_json() -> None:
    """Where the two figures stand is a setting; what is not there is said."""
    data = {"usage": [{"used": "42.5"}], "ends": "2026-02-15T17:36:48Z"}
    found = plain_reading(data, "usage.0.used", "ends", 1771170000000)
    assert found == Reading(42.5, 1771177008000)
    wrong = plain_reading(data, "a", "b", 0)
    assert isinstance(wrong, ReadFailure)
    assert "percentage_key and reset_key" in wrong.error


async def test_the_http_provider_reads_and_wakes(served: Served) -> None:
    """By its addresses and places."""
    account = served.account(KEY)
    account.percentage = 12
    account.warm("2h")
    data = {
        "provider": "http",
        "quotaUrl": f"{served.url}/api/monitor/usage/quota/limit",
        "wakeUrl": f"{served.url}/api/coding/paas/v4/chat/completions",
        "wakeBody": '{"x": 1}',
        "percentageKey": "data.limits.1.percentage",
        "resetKey": "data.limits.1.nextResetTime",
        "apiKey": KEY,
    }
    slot = read_slot("main", data, home=Path("/"))
    one = make_provider("main", slot, clock=CLOCK, home=Path("/"), zone="UTC")
    assert await one.read("x") == Reading(12, account.reset_at)
    assert await one.wake("x", FIRE, NoLadder()) is None
    await one.close()
    assert len(account.woken) == 1
    assert not one.has_statistics


async def test_the_command_provider_reads_and_wakes(tmp_path: Path) -> None:
    """By its programs; what it prints that is no JSON is said, and secrets of its environment are not."""
    program = tmp_path / "quota.py"
    program.write_text(
        "import json, os, sys\n"
        "if sys.argv[1] == 'wake': open('woken', 'a').write(os.environ['WAKEFUL_IDEMPOTENCY_KEY'])\n"
        "elif sys.argv[1] == 'bad': print('no', os.environ['TOKEN'])\n"
        "else: print(json.dumps({'percentage': 5, 'nextResetTime': None}))\n"
    )

    def made(word: str) -> QuotaProvider:
        data = {
            "provider": "command",
            "quotaArgv": [sys.executable, str(program), word],
            "wakeArgv": [sys.executable, str(program), "wake"],
            "env": {"TOKEN": "a-very-secret-token"},
        }
        slot = read_slot("main", data, home=tmp_path)
        return make_provider("main", slot, clock=CLOCK, home=tmp_path, zone="UTC")

    one = made("read")
    assert await one.read("x") == Reading(5, None)
    assert await one.wake("x", FIRE, NoLadder()) is None
    await one.close()
    assert (tmp_path / "woken").read_text() == "key-1"
    bad = made("bad")
    found = await bad.read("x")
    await bad.close()
    assert isinstance(found, ReadFailure)
    assert "printed no JSON" in found.error
    assert "a-very-secret-token" not in found.error


async def test_equal_keys_have_equal_marks_and_others_do_not() -> None:
    """That is how one request serves several slots; the mark tells nothing."""
    marks = [
        provider(url, {"apiKey": key}).mark for url, key in (("https://a.example", "k1"), ("https://a.example/", "k1"))
    ]
    assert marks[0] == marks[1]
    assert provider("https://b.example", {"apiKey": "k1"}).mark != marks[0]
    assert provider("https://a.example", {"apiKey": "k2"}).mark != marks[0]
    assert json.dumps(marks).find("k1") == -1
