"""The calendar feed over HTTP: its key opens nothing else, and can be renewed."""

import logging
from pathlib import Path

import icalendar
import pytest

from edges.http.kit import EVERY, served
from wakeful.server.http.access import Access, NamedToken

FEED = "/api/calendar.ics"
ACCESS = Access(
    tokens=[
        NamedToken("admin", "top-secret"),
        NamedToken("eyes", "look", "read"),
        NamedToken("bot", "beep", "agent", "coder"),
    ]
)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def test_the_key_opens_the_feed_and_nothing_else(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Without a token; and no log line has it."""
    caplog.set_level(logging.DEBUG)
    async with served(tmp_path, access=ACCESS) as api:
        await api.put("tick", EVERY, headers=bearer("top-secret"))
        assert (await api.get("/api/calendar/key", headers=bearer("top-secret"))).body == {
            "key": None,
            "path": None,
            "url": None,
        }
        made = await api.post("/api/calendar/key", headers=bearer("top-secret"))
        key, path = made.body["key"], made.body["path"]
        assert (made.status, path) == (201, f"{FEED}?key={key}")
        assert (await api.get("/api/calendar/key", headers=bearer("top-secret"))).body == made.body
        feed = await api.get(path)
        assert (feed.status, feed.headers["content-type"]) == (200, "text/calendar; charset=utf-8")
        titles = {str(event["SUMMARY"]) for event in icalendar.Calendar.from_ical(feed.body).walk("VEVENT")}
        assert any(title.startswith("tick") for title in titles)
        for method, place in (
            ("GET", "/api/schedule"),
            ("GET", "/api/upcoming"),
            ("GET", "/api/calendar/key"),
            ("POST", "/api/calendar/key"),
            ("POST", FEED),
            ("DELETE", "/api/schedule/tick"),
        ):
            refused = await api.ask(method, f"{place}?key={key}")
            assert refused.status == 401, (method, place)
        assert (await api.get("/api/schedule", headers=bearer(key))).status == 401
        assert (await api.post("/login", {"token": key})).status == 401
        assert key not in caplog.text


async def test_a_renewed_key_replaces_the_old_one_at_once(tmp_path: Path) -> None:
    """The old address gets 401, and says what to do; guesses are limited like wrong tokens."""
    async with served(tmp_path, access=ACCESS) as api:
        assert (await api.get(f"{FEED}?key=guess")).status == 401
        first = (await api.post("/api/calendar/key", headers=bearer("top-secret"))).body["path"]
        second = (await api.post("/api/calendar/key", headers=bearer("top-secret"))).body["path"]
        old = await api.get(first)
        assert (old.status, "was renewed" in old.body["detail"]) == (401, True)
        assert (await api.get(second)).status == 200
        guesses = [(await api.get(f"{FEED}?key={number}")).status for number in range(12)]
        assert set(guesses) == {401, 429}
        assert (await api.get(second)).status == 200, "on loopback the right one is still accepted"


async def test_ordinary_authorisation_works_too(tmp_path: Path) -> None:
    """For whoever may read; an agent may not, and nobody without a token."""
    async with served(tmp_path, access=ACCESS) as api:
        assert (await api.get(FEED, headers=bearer("look"))).status == 200
        assert (await api.get(FEED, headers=bearer("beep"))).status == 403
        assert (await api.get(FEED)).status == 401
        assert (await api.get(f"{FEED}?key=")).status == 401
        assert (await api.get("/api/calendar/key", headers=bearer("look"))).status == 403
        assert (await api.post("/api/calendar/key", headers=bearer("look"))).status == 403


async def test_every_node_accepts_the_key(tmp_path: Path) -> None:
    """It is in the store."""
    async with served(tmp_path, access=ACCESS) as one:
        path = (await one.post("/api/calendar/key", headers=bearer("top-secret"))).body["path"]
        async with served(tmp_path, access=ACCESS, tick=False) as other:
            assert (await other.get(path)).status == 200
