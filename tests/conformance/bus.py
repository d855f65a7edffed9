# ruff: noqa: B023 - these are tests: they assert, and they await each lambda where they make it
"""Conformance: the bus between processes that share a store."""

import asyncio

import pytest

from conformance.rows import NOW, MakeStore
from wakeful.observe.bus_rows import Bus, Relayed
from wakeful.ports.store import Store, Tx


class TestBus:
    """Watchers and their events."""

    async def test_one_who_watches_is_seen_by_the_others_until_then(self, make_store: MakeStore) -> None:
        """But not by itself; renewing extends the time; the next call removes expired watchers."""
        store = await make_store()

        async def seen(by: str, now: int) -> bool:
            return await store.read(lambda tx: tx[Bus].is_watched(now=now, but=by))

        assert not await seen("b", NOW)
        assert await store.write(lambda tx: tx[Bus].watch("a", now=NOW, until=NOW + 10)) == 0
        assert [await seen("b", at) for at in (NOW, NOW + 10, NOW + 11)] == [True, True, False]
        assert not await seen("a", NOW)
        await store.write(lambda tx: tx[Bus].watch("a", now=NOW + 5, until=NOW + 15))
        assert await seen("b", NOW + 15)
        await store.write(lambda tx: tx[Bus].watch("c", now=NOW + 16, until=NOW + 26))
        assert not await seen("c", NOW)

    async def test_what_is_told_has_numbers_without_gaps(self, make_store: MakeStore) -> None:
        """Starting with the last number at the time of `watch`; the reader's own events come without their text."""
        store = await make_store()
        await _publish(store, "a", "before")
        last = await store.write(lambda tx: tx[Bus].watch("b", now=NOW, until=NOW + 10))
        await _publish(store, "a", "one")
        await _publish(store, "b", "own")
        await _publish(store, "c", "two ü")
        assert last == 1
        assert await store.read(lambda tx: tx[Bus].after(last, reader="b", limit=10)) == [
            Relayed(2, "a", "one"),
            Relayed(3, "b", None),
            Relayed(4, "c", "two ü"),
        ]
        assert await store.read(lambda tx: tx[Bus].after(2, reader="a", limit=1)) == [Relayed(3, "b", "own")]

    async def test_what_was_rolled_back_has_no_number(self, make_store: MakeStore) -> None:
        """The next one gets that number."""
        store = await make_store()

        def fail(tx: Tx) -> None:
            tx[Bus].publish("a", "never", now=NOW, keep_from=0)
            raise ValueError("no")

        with pytest.raises(ValueError, match="no"):
            await store.write(fail)
        assert await _publish(store, "a", "first") == 1

    async def test_the_old_is_forgotten_as_new_comes(self, make_store: MakeStore) -> None:
        """Numbers continue."""
        store = await make_store()
        for n in range(5):
            await _publish(store, "a", str(n), now=NOW + n)
        assert await _publish(store, "a", "5", now=NOW + 5, keep_from=NOW + 3) == 6
        found = await store.read(lambda tx: tx[Bus].after(0, reader="b", limit=10))
        assert [relayed.events for relayed in found] == ["3", "4", "5"]

    async def test_numbers_appear_in_their_order(self, make_store: MakeStore) -> None:
        """Several processes publish concurrently, and a reader that goes from number to number misses none."""
        stores = [await make_store() for _ in range(3)]
        seen: list[int] = []

        async def read() -> None:
            while len(seen) < 60:
                last = seen[-1] if seen else 0
                found = await stores[0].read(lambda tx: tx[Bus].after(last, reader="r", limit=100))
                seen.extend(relayed.seq for relayed in found)

        async with asyncio.timeout(60):
            reporter = [_publish(stores[n % 3], f"s{n % 3}", str(n)) for n in range(60)]
            await asyncio.gather(read(), *reporter)
        assert seen == list(range(1, 61))


async def _publish(store: Store, sender: str, text: str, *, now: int = NOW, keep_from: int = 0) -> int:
    return await store.write(lambda tx: tx[Bus].publish(sender, text, now=now, keep_from=keep_from))
