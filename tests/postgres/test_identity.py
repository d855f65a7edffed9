"""A node remembers which store it entered: a database that becomes another store is not used."""

import pytest

from postgres.cluster import until
from wakeful import Wakeful, manual
from wakeful.ports.meta import Meta
from wakeful.ports.store import STORE_ID, Tx


async def test_a_database_that_becomes_another_store_is_not_used(url: str, caplog: pytest.LogCaptureFixture) -> None:
    """As after restoring another store's dump into it while the node runs; put back, it is used again."""
    app = Wakeful(url, name="one", timezone="UTC", shutdown_grace="1s")
    ran: list[int] = []

    @app.job(manual())
    def work() -> None:
        ran.append(1)

    def swap(tx: Tx, to: str) -> str:
        before = tx[Meta].value(STORE_ID) or ""
        tx[Meta].set(STORE_ID, to)
        return before

    def refusals() -> int:
        return caplog.text.count("the database is another store now")

    async def is_refused() -> bool:
        return refusals() > 0

    async def is_refused_again() -> bool:
        return refusals() > before

    async def has_run() -> bool:
        return bool(ran)

    async with app:
        ours = await app._store.write(lambda tx: swap(tx, "another"))
        await until(is_refused)
        before = refusals()
        await app.run_now("work")
        await until(is_refused_again)
        assert ran == []
        await app._store.write(lambda tx: swap(tx, ours))
        await until(has_run)
