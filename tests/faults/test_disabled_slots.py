"""Slots whose wakes have no effect, on a real daemon that is killed, at a provider that is a process of its own."""

import random
import time
from datetime import datetime
from pathlib import Path

import pytest

from faults.living import Home, outside, until

SLOTS = 12
SETTINGS = """
[quota]
slots_max = 12
retry_window = "1m"
"""
SLOT = """
[slots.s{n}]
provider = "http"
api_key = "sk-{n}"
quota_url = "{url}/quota/{n}"
wake_url = "{url}/wake/{n}"
interval = "65s"
poll = "24h"
errors_max = {errors}
"""


@pytest.mark.torture
@pytest.mark.waits
def test_after_waking_is_disabled_the_provider_hears_of_no_further_wake(tmp_path: Path) -> None:
    """A dozen slots, and a daemon that is killed five times before it may stay. Each slot is woken, woken once more
    when that had no effect, and read before the next wake. That reading disables some of them, which depends on what
    the last kill left pending. What the provider heard is compared with the log."""
    rng = random.Random(6)
    with outside(tmp_path) as provider:
        settings = SETTINGS + "".join(SLOT.format(n=n, url=provider.url, errors=2 + n % 2) for n in range(SLOTS))
        home = Home(tmp_path / "home", settings)
        for _ in range(5):
            with home.daemon():
                time.sleep(rng.uniform(0, 3))
        with home.daemon() as running:
            began = time.time_ns() // 1_000_000

            def are_all_disabled() -> bool:
                return all(slot["wakeDisabled"] for slot in home.ask("GET", "/api/slots")["slots"])

            until(are_all_disabled, within=400, pause=1)
            time.sleep(5)  # what was under way arrives
            slots = {slot["name"]: slot for slot in home.ask("GET", "/api/slots")["slots"]}
            rows = {name: home.ask("GET", f"/api/slots/{name}/runs?limit=100")["runs"] for name in slots}
            running.end()
        lines = [line for line in home.log() if line["action"] == "wake.scheduler.auto-disabled"]
        at_disabling = 0
        for name, slot in slots.items():
            assert (slot["wakePending"], slot["wakeErrors"]) == (False, slot["errorsMax"]), slot
            assert slot["wakeRun"] is None, slot
            (said,) = [line for line in lines if line.get("slot") == name and at_ms(line["ts"]) >= began]
            woken = [one for one in provider.heard() if one["path"] == f"/wake/{name[1:]}"]
            assert woken, f"{name} was never woken"
            assert max(one["at"] for one in woken) <= at_ms(said["ts"]), (name, woken, said)
            assert {row["outcome"] for row in rows[name]} <= {"unconfirmed", "skipped"}
            for row in rows[name]:
                if row.get("reason") == "disabled":
                    at_disabling += 1
                    assert (row["outcome"], row["rung"]) == ("skipped", "claimed"), row
                    assert max(one["at"] for one in woken) < at_ms(row["startedAt"]), row
        assert at_disabling > 0, "no reading before a wake disabled its slot"


def at_ms(text: str) -> int:
    """A timestamp of the log."""
    return round(datetime.fromisoformat(text).timestamp() * 1000)
