"""Conformance: cancel requests."""

from conformance.rows import NOW, MakeStore
from wakeful.engine.cancels import CancelRequest, Cancels


class TestCancels:
    """Which runs people asked to cancel."""

    async def test_the_first_request_for_a_run_is_kept(self, make_store: MakeStore) -> None:
        """A second one changes nothing; other runs are unaffected; hostile text is only text."""
        store = await make_store()
        first = CancelRequest(7, NOW, "'; DROP TABLE cancels; -- é")
        await store.write(lambda tx: tx[Cancels].add_first(first))
        await store.write(lambda tx: tx[Cancels].add_first(CancelRequest(7, NOW + 5, "later")))
        await store.write(lambda tx: tx[Cancels].add_first(CancelRequest(9, NOW + 6, "")))
        again = await make_store()
        assert await again.read(lambda tx: tx[Cancels].among([7, 8])) == {7: first}
        assert await again.read(lambda tx: tx[Cancels].among([])) == {}
        await again.write(lambda tx: tx[Cancels].remove_many([7, 8]))
        assert list(await again.read(lambda tx: tx[Cancels].among([7, 9]))) == [9]

    async def test_old_requests_are_pruned_a_few_at_a_time(self, make_store: MakeStore) -> None:
        """Not those of a clock that was not set."""
        store = await make_store()
        for run_id, at in ((1, 5), (2, NOW), (3, NOW + 1), (4, NOW + 9)):
            row = CancelRequest(run_id, at, "")
            await store.write(lambda tx, row=row: tx[Cancels].add_first(row))  # type: ignore[misc]
        assert await store.write(lambda tx: tx[Cancels].prune(before=NOW + 5, since=NOW, limit=1)) == 1
        assert await store.write(lambda tx: tx[Cancels].prune(before=NOW + 5, since=NOW, limit=9)) == 1
        assert set(await store.read(lambda tx: tx[Cancels].among([1, 2, 3, 4]))) == {1, 4}
