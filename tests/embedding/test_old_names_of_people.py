"""Names of 0.2 for messages to people: they warn, and do what the operations of `app.people` do."""

from pathlib import Path

import pytest

from wakeful import NotFound, Wakeful
from wakeful.testing import virtual


async def test_old_names_of_messages_work_and_warn(tmp_path: Path) -> None:
    """What 0.2 called on the app and on `delivering` returns what it returned."""
    app = Wakeful(tmp_path / "wakeful.db", timezone="UTC")
    async with virtual(app) as time:
        with pytest.warns(DeprecationWarning, match=r"Wakeful.deliver is deprecated.*use app.people.send"):
            sent = await app.deliver("hello", channel="inbox")
        await time.advance("1m")
        with pytest.warns(DeprecationWarning, match=r"use app.people$"):
            old = app.delivering
        assert await old.page() == [await old.get(sent.id)]
        (item,), unread = await old.inbox()
        assert (item.text, unread) == ("hello", 1)
        await old.mark_read(int(item.id))
        assert await old.inbox(unread=True) == ([], 0)
        assert (await old.test("inbox")).status == "delivered"
        with pytest.warns(DeprecationWarning, match=r"use app.people.today"):
            assert await app.today(since=app.now) == await app.people.today(since=app.now)
        with pytest.warns(DeprecationWarning, match=r"use app.people.alerts"):
            assert await app.alerts() == []
        with pytest.warns(DeprecationWarning, match=r"use app.people.acknowledge"), pytest.raises(NotFound):
            await app.acknowledge_alert("7")
        with pytest.warns(DeprecationWarning, match=r"use app.schedules.acknowledge"), pytest.raises(NotFound):
            await app.acknowledge("report")
