"""`check` of the heartbeat: no turn if there is nothing to do."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from features.kit import Bench, World, ledger, virtual
from features.test_checks import Checker
from features.voice import NO, Voice
from wakeful import Heartbeat
from wakeful.core.errors import Invalid
from wakeful.core.heartbeat.heartbeat import BeatRules
from wakeful.core.schedule.actions import Command, Prompt
from wakeful.core.schedule.pre_check import PreCheck
from wakeful.core.time.instants import MINUTE
from wakeful.features.heartbeat.feature import HeartbeatFeature
from wakeful.features.heartbeat.rules import HeartbeatTerms

CHECK = PreCheck(command=Command(("new-mail",)))
TERMS = HeartbeatTerms(enabled=True, every=5 * MINUTE, check=CHECK)


async def _beating(world: World, voice: Voice, checker: Checker, terms: HeartbeatTerms = TERMS) -> Bench:
    bench = world.bench(actions={Prompt: voice, Command: checker}, heartbeat=HeartbeatFeature(terms))
    await bench.start()
    return bench


@virtual
async def test_a_day_of_beats_that_find_nothing_is_one_row(world: World) -> None:
    """288 beats prompt no model, reserve no turn of the hour, and are one explained row; every id still resolves."""
    voice, checker = Voice(world), Checker()
    app = await _beating(world, voice, checker, replace(TERMS, beats=BeatRules(turns_per_hour_max=2)))
    await world.sleep("1d1m")
    assert (checker.asked, voice.heard) == (288, [])
    assert await ledger(app, "heartbeat") == ["01-01 00:05:00 skipped (nothing to do) x288"]
    assert "the check found nothing" in (await app.why("heartbeat", at="2026-01-01T12:00:00Z")).sentence
    (row,) = await app.runs("heartbeat")
    assert (await app.ledger.get(row.run_id + 7)).run_id == row.run_id
    assert world.query("SELECT count(*) FROM charges") == [(0,)]
    assert app.alerted == []


@virtual
async def test_what_it_finds_is_given_to_the_agent_and_again_to_the_retry(world: World) -> None:
    """The turn splits the row; the retry of a failed turn asks the check again, and runs even if it finds nothing."""
    voice, checker = Voice(world), Checker()
    voice.script = [NO]
    checker.says = {3: "2 new letters\n", 4: "3 new letters\n"}
    app = await _beating(world, voice, checker)
    await world.sleep("31m")
    assert [text.rpartition("\n\n[check]\n")[2] for text in voice.heard] == ["2 new letters", "3 new letters"]
    rows = [line.split(" ", 2)[2] for line in await ledger(app, "heartbeat")]
    assert rows[0] == "skipped (nothing to do) x2" and rows[-1] == "skipped (nothing to do) x3"
    assert len(rows) == 4


@virtual
async def test_a_requested_turn_is_not_checked(world: World) -> None:
    """A person or an event waits for it."""
    voice, checker = Voice(world), Checker()
    app = await _beating(world, voice, checker)
    await app.request_wake("manual")
    await world.sleep("1m")
    assert (len(voice.heard), checker.asked) == (1, 0)


@pytest.mark.parametrize(("on_error", "turns"), [("wake", 12), ("skip", 0)])
@virtual
async def test_a_check_that_fails(world: World, on_error: Any, turns: int) -> None:
    """It wakes the agent, which is told of it, or the beats are skipped and one row."""
    voice, checker = Voice(world), Checker()
    checker.usual = None
    app = await _beating(world, voice, checker, replace(TERMS, check=replace(CHECK, on_error=on_error)))
    await world.sleep("1h1m")
    assert (checker.asked, len(voice.heard)) == (12, turns)
    assert all("(the check failed: exited with 1)" in text for text in voice.heard)
    if on_error == "skip":
        assert await ledger(app, "heartbeat") == ["01-01 00:05:00 skipped (check failed) x12"]
        assert (await app.runs("heartbeat"))[0].error == "exited with 1"


def test_how_it_is_written(tmp_path: Path) -> None:
    """The words of a settings file; errors name the field."""
    given = {"command": {"argv": ["./new-mail"], "output_max": 100}, "on_error": "skip"}
    read = Heartbeat(check=given).feature().terms.check
    assert read is not None
    assert (read.command, read.on_error) == (Command(("./new-mail",), output_max=100), "skip")
    with pytest.raises(Invalid, match=r"check\.on_error: .*wake"):
        Heartbeat(check={"command": {"argv": ["x"]}, "on_error": "perhaps"})
    with pytest.raises(Invalid, match="exactly one of command and http"):
        Heartbeat(check={})
    with pytest.raises(Invalid, match="is not a table; write for example"):
        Heartbeat(check="new-mail")  # type: ignore[arg-type]
