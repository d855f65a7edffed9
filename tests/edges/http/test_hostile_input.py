"""Input that used to block the daemon, or to slip through."""

import asyncio
from pathlib import Path

import pytest

from edges.http.kit import Client, served
from wakeful.api.nouns import NOUNS
from wakeful.api.operation import operations_of
from wakeful.config.kinds.addresses import is_private
from wakeful.config.secrets import MASK, SecretUrl
from wakeful.integrations.net.guard import check_literal, plain_name
from wakeful.integrations.net.trouble import PrivateAddress
from wakeful.server.http import server as serving

PRIVATE = ("127。0。0。1", "１２７.0.0.1", "127．0．0．1", "①②⑦.0.0.1", "127｡0｡0｡1", "localhost。", "x.localhost")  # noqa: RUF001 - the ambiguity is what is tried
"""Ways to write this machine that HTTP clients understand."""


@pytest.mark.parametrize("host", PRIVATE[:-2])
def test_an_address_in_other_digits_or_dots_is_still_private(host: str) -> None:
    """Clients normalise the host before they connect, so the guard does too."""
    with pytest.raises(PrivateAddress):
        check_literal(f"http://{host}/")
    assert plain_name(host) == "127.0.0.1"


@pytest.mark.parametrize("host", PRIVATE)
def test_the_settings_recognise_them_too(host: str) -> None:
    """A webhook there needs `allow_private`."""
    assert is_private(host)


async def test_very_long_lists_are_refused_by_their_length(api: Client) -> None:
    """100,000 times of day blocked the event loop for 14 s, a cron list of 190,000 terms for 3 s."""
    many = {"schedule": {"type": "times", "times": ["09:00"] * 100_000}, "command": {"argv": ["true"]}}
    answer = await api.put("many", many)
    assert (answer.status, answer.body["errors"][0]["field"]) == (400, "schedule.times")
    assert "at most 1440" in answer.body["error"]
    expression = f"{','.join(['0'] * 190_000)} 9 * * *"
    long = {"schedule": {"type": "cron", "expression": expression}, "command": {"argv": ["true"]}}
    answer = await api.put("long", long)
    assert (answer.status, answer.body["errors"][0]["field"]) == (400, "schedule.expression")
    assert len(answer.body["error"]) < 500


async def test_a_key_that_is_there_twice_is_refused(api: Client) -> None:
    """Which of the two counts would be a guess."""
    body = '{"schedule": {"type": "manual"}, "command": {"argv": ["true"]}, "command": {"argv": ["false"]}}'
    answer = await api.ask("PUT", "/api/schedule/job", raw=body)
    assert answer.status == 400
    assert "duplicate key 'command'" in answer.body["error"]


async def test_a_request_that_never_arrives_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a head, and half a body: the connection is closed instead of staying open for ever."""
    monkeypatch.setattr(serving.Protocol, "arrive_within", 0.2)
    async with served(tmp_path) as api:
        host, _, port = api.base.removeprefix("http://").rpartition(":")
        for half in (
            b"",
            b"GET /api/sche",
            b"PUT /api/schedule/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
        ):
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(half)
            await asyncio.wait_for(reader.read(), 60)  # ends when the server closes the connection
            writer.close()
        assert (await api.get("/api/schedule")).status == 200


def test_the_path_of_a_webhook_is_not_shown() -> None:
    """It is often all that keeps others from posting there."""
    url = SecretUrl("https://hooks.example.com/services/T0000/B0000/abcdefghijklmnopqrstuvwx", hides_path=True)
    assert str(url) == f"https://hooks.example.com/services/T0000/B0000/{MASK}"
    assert "abcdefghijklmnopqrstuvwx" in url.values
    assert str(SecretUrl("https://example.com", hides_path=True)) == "https://example.com"


async def test_every_route_refuses_unknown_parameters(api: Client) -> None:
    """A misspelt `?dryrun=true` must not write. Routes are asked without a body, so none of them writes here."""
    paths = (await api.get("/api/openapi.json")).body["paths"]
    hook = "/api/hooks/{name}"  # refuses everything without its token first
    asked = [(method.upper(), path) for path, methods in paths.items() for method in methods if path != hook]
    assert len(asked) > 60
    accepted = []
    for method, path in asked:
        answer = await api.ask(method, f"{path.replace('{', '').replace('}', '')}?dryrun=true")
        if answer.status != 400 or "dryrun" not in str(answer.body):
            accepted.append(f"{method} {path}: {answer.status}")
    assert accepted == []


async def test_a_request_without_fields_says_so(api: Client) -> None:
    """It names no fields that it could have, because there are none."""
    without = [
        one
        for noun in NOUNS.values()
        for one in operations_of(noun)
        if one.method == "POST" and not any(given.where in ("body", "document") for given in one.parameters)
    ]
    assert len(without) > 10
    wrong = {}
    for one in without:
        answer = await api.post(one.path.replace("{", "").replace("}", ""), {"colour": "red"})
        if (answer.status, answer.body["detail"]) != (400, "colour: unknown field; this request has none"):
            wrong[one.route] = answer.body
    assert wrong == {}
