"""Messages to people in a program: `app.people`, and its blocking form."""

from pathlib import Path

import pytest

from wakeful import Conflict, NotFound, Wakeful
from wakeful.api.actors import Actor, Refused
from wakeful.api.people import People
from wakeful.sync import Wakeful as BlockingWakeful
from wakeful.testing import virtual


async def test_a_message_goes_to_a_channel_and_is_listed(tmp_path: Path) -> None:
    """By the channel of the last interaction; ids of results are what the operations take."""
    got: list[str] = []
    app = Wakeful(tmp_path / "wakeful.db", timezone="UTC")
    app.register_channel("desk", "me", got.append)
    async with virtual(app) as time:
        touched = await app.touch("desk", "ann")
        assert touched.last is not None and (touched.last.channel, touched.last.to) == ("desk", "ann")
        made = await app.people.send("hello")
        assert (made.channel, made.to, made.status) == ("desk", "ann", "pending")
        await time.advance("1m")
        assert got == ["hello"]
        assert (await app.people.delivery(made.id)).status == "delivered"
        with pytest.raises(Conflict):
            await app.people.retry(made.id)
        await app.people.send("for later", channel="inbox")
        await time.advance("1m")
        (item,) = (await app.people.inbox()).items
        await app.people.mark_read(item.id)
        await app.people.mark_read(item.id, read=False)
        assert await app.people.mark_all_read() == 1
        await app.people.remove_item(item.id)
        with pytest.raises(NotFound, match=f"there is no inbox item {item.id}"):
            await app.people.remove_item(item.id)
        newest = await app.people.deliveries(limit=1)
        rest = await app.people.deliveries(cursor=newest.next)
        assert [one.text for one in (*newest.deliveries, *rest.deliveries)] == ["for later", "hello"]


async def test_the_role_of_who_asks_is_checked(tmp_path: Path) -> None:
    """A person who may only read can list messages, and send none."""
    app = Wakeful(tmp_path / "wakeful.db", timezone="UTC")
    async with virtual(app):
        reader = People(app, Actor("read"))
        assert (await reader.deliveries()).deliveries == []
        with pytest.raises(Refused):
            await reader.send("hello")


def test_the_blocking_app_has_the_same_operations(tmp_path: Path) -> None:
    """They return results in place of coroutines."""
    with BlockingWakeful(tmp_path / "wakeful.db") as app:
        made = app.people.send("hello", channel="inbox")
        assert app.people.delivery(made.id).text == "hello"
        assert [channel.name for channel in app.touch("inbox").channels] == ["inbox"]
        assert app.people.today().attention == []
        assert app.people.alerts().alerts == []
