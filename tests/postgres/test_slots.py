"""Quota slots on a shared database: two nodes, one wake."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from features.quota_kit import Account, quota_server
from patience import PATIENCE
from wakeful import Wakeful, after_reset
from wakeful.app.options import Host
from wakeful.app.quota import QuotaSlots
from wakeful.config import Settings, load
from wakeful.engine.clock import SystemClock

KEY = "sk-shared-0123456789"
WITHIN = PATIENCE


def settings(home: Path, url: str) -> Settings:
    (home / "wakeful.toml").write_text(
        f'[slots.main]\napi_key = "{KEY}"\nbase_url = "{url}"\ninterval = "60m"\nafter_reset = "1m"\n'
    )
    return load(home).settings


async def until(look: Callable[[], Any]) -> Any:
    """What is looked at, once it is there."""
    async with asyncio.timeout(WITHIN):
        while not (found := await look()):
            await asyncio.sleep(0.05)
        return found


async def test_two_nodes_keep_one_slot_with_one_wake(url: str, tmp_path: Path) -> None:
    """Both know the slot, and one of them sends; the other sees it warm, and both see the ledger."""
    account = Account(lambda: SystemClock().read().now)
    async with quota_server({KEY: account}) as served:
        known = settings(tmp_path, served.url)
        nodes = [QuotaSlots(known, home=tmp_path, file="wakeful.toml") for _ in range(2)]
        apps = [
            Wakeful(url, name=f"n{n}", features=[node.plug], host=Host(quota=lambda node=node: node.quota))
            for n, node in enumerate(nodes)
        ]
        async with apps[0], apps[1]:

            async def confirmed() -> bool:
                slots = [await app.slots.get("main") for app in apps]
                return all(slot.warm and not slot.wake_pending and slot.wake_run is None for slot in slots)

            await until(confirmed)
            assert len(account.woken) == 1
            runs = await apps[1].runs("slot:main")
            assert [run.outcome for run in runs] == ["succeeded"]
            await apps[0].add("digest", after_reset("main", "5m"), command=["true"])
            assert (await apps[1].get("digest")).next_run is not None
            before = len(account.reads)
            await apps[1].slots.poll("main")

            async def read_again() -> bool:
                return len(account.reads) > before

            await until(read_again)
            started = await apps[0].slots.wake("main")
            run = await apps[1].wait_for(started.run_id)
            assert (run.outcome, len(account.woken)) == ("succeeded", 2)
