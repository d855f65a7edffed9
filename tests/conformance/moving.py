"""Conformance: where definitions came from, and the journals of takeovers."""

from functools import partial

from conformance.rows import NOW, MakeStore
from wakeful.api.origin_rows import Origin, Origins
from wakeful.features.moving.handover_rows import Handover, HandoverJournals
from wakeful.ports.store import Tx


def _origin(ref: str, *, place: str = "/etc/crontab", name: str = "tidy", digest: str = "d") -> Origin:
    return Origin("crontab", place, ref, "schedule", name, digest, NOW)


def _handover(handover_id: str) -> Handover:
    return Handover(
        handover_id, "crontab", "host", "written", NOW + 60_000, None, '{"é": "\'"}', None, NOW + len(handover_id), NOW
    )


def _put(tx: Tx, rows: list[Origin]) -> None:
    tx[Origins].put_many(rows)


def _put_handover(tx: Tx, row: Handover) -> None:
    tx[HandoverJournals].put(row)


class TestOrigins:
    """Where definitions came from."""

    async def test_an_origin_is_written_once_per_place_and_reference(self, make_store: MakeStore) -> None:
        """A second write replaces it; other places are unaffected; hostile text is only text."""
        store = await make_store()
        hostile = "'; DROP TABLE origins; -- \N{ALARM CLOCK}"
        await store.write(partial(_put, rows=[_origin("b"), _origin(hostile), _origin("b", place="user:me")]))
        await store.write(partial(_put, rows=[_origin("b", name="other", digest="e")]))
        assert await store.read(lambda tx: tx[Origins].of_place("crontab", "/etc/crontab")) == [
            _origin(hostile),
            _origin("b", name="other", digest="e"),
        ]
        assert await store.read(lambda tx: tx[Origins].of_place("systemd", "/etc/crontab")) == []
        await store.write(lambda tx: tx[Origins].forget([_origin(hostile), _origin("gone")]))
        left = await store.read(lambda tx: tx[Origins].of_place("crontab", "/etc/crontab"))
        assert [row.ref for row in left] == ["b"]


class TestHandovers:
    """Journals of takeovers."""

    async def test_open_journals_are_found_in_order_until_they_are_finished(self, make_store: MakeStore) -> None:
        """Every column is written back; the time of creation stays."""
        store = await make_store()
        for name in ("b", "aa", "ccc"):
            await store.write(partial(_put_handover, row=_handover(name)))
        switching = _handover("b")._replace(stage="switching", off_at=NOW, problem="é", updated_at=NOW + 5)
        await store.write(lambda tx: tx[HandoverJournals].put(switching))
        await store.write(lambda tx: tx[HandoverJournals].put(_handover("aa")._replace(stage="done")))
        assert await store.read(lambda tx: tx[HandoverJournals].open()) == [switching, _handover("ccc")]
        assert await store.read(lambda tx: tx[HandoverJournals].get("b")) == switching
        assert await store.read(lambda tx: tx[HandoverJournals].get("none")) is None
