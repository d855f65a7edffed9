"""Deliveries of a real daemon in a crash loop, to a receiver that is healthy and a process of its own."""

import json
import random
import sqlite3
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from faults.living import Home, Outside, outside, until
from patience import PATIENCE

SETTINGS = """
[channels.hook]
type = "webhook"
url = "{url}/in"
allow_private = true
"""
CLAIMED = "SELECT 1 FROM addressees WHERE claimed_until IS NOT NULL"
STATES = "SELECT delivery_id, status, attempts, unsent_claims FROM deliveries ORDER BY delivery_id"


def die_at_a_claim(home: Home) -> None:
    """Start a daemon, and kill it as soon as it has claimed a delivery, or after a second without."""
    with home.daemon(), closing(sqlite3.connect(home.folder / "wakeful.db", timeout=PATIENCE)) as file:
        give_up_at = time.monotonic() + 1
        while not file.execute(CLAIMED).fetchall() and time.monotonic() < give_up_at:
            pass  # what is loaded before the first message takes longer than this look


def arrived(receiver: Outside) -> Counter[str]:
    return Counter(json.loads(one["body"])["text"] for one in receiver.heard())


@pytest.mark.torture
@pytest.mark.waits
def test_seven_starts_that_are_killed_at_once_lose_no_message(tmp_path: Path) -> None:
    """Killed as soon as a delivery is claimed: what was not marked is no attempt. Then a minute of daemons that are
    killed at any moment, while more is written. In the end every message has arrived, and none is dead."""
    rng = random.Random(5)
    with outside(tmp_path) as receiver:
        home = Home(tmp_path / "home", SETTINGS.format(url=receiver.url))
        with home.daemon():
            for text in ("first", "second"):
                home.ask("POST", "/api/deliveries", {"channel": "hook", "text": text})
        for _ in range(7):
            die_at_a_claim(home)
        for number, status, attempts, _ in home.query(STATES):
            assert status != "dead", (number, attempts)
        written = ["first", "second"]
        ends_at = time.monotonic() + 60
        while time.monotonic() < ends_at:
            with home.daemon():
                for _ in range(rng.randrange(3)):
                    written.append(f"message {len(written)}")
                    home.ask("POST", "/api/deliveries", {"channel": "hook", "text": written[-1]})
                time.sleep(rng.uniform(0, 0.5))
        with home.daemon():
            for number, status, *_ in home.query(STATES):
                if status == "pending":
                    home.ask("POST", f"/api/deliveries/{number}/retry")  # what waits for ten minutes goes now
            until(lambda: all(status == "delivered" for _, status, *_ in home.query(STATES)))
        got = arrived(receiver)
        assert set(got) == set(written)
        for text, (number, _, attempts, _) in zip(written, home.query(STATES), strict=True):
            assert got[text] <= attempts, (number, text)
