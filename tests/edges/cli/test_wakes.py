"""The heartbeat from the command line, over a daemon with the agent that is built in."""

import time

from edges.cli.kit import WITHIN, Cli, Said


def until(cli: Cli, *arguments: str, holds: str) -> Said:
    """Ask until the answer has this in it."""
    end = time.monotonic() + WITHIN
    while holds not in (said := cli.ask(*arguments)).out:
        assert time.monotonic() < end, said
        time.sleep(0.05)
    return said


def test_wake_and_see_the_turn(cli: Cli) -> None:
    """Asked for, taken, and shown with what asked for it; the ledger has it under its own name."""
    said = cli.run("wake", "--text", "the kettle boils", "--key", "kettle")
    assert (said.code, said.out) == (0, "turn requested; see it with: wakeful heartbeat\n")
    shown = until(cli, "heartbeat", holds="succeeded (sent)")
    assert "disabled (beats are off; wakes still work)" in shown.out
    assert "of 60 turns in the last hour" in shown.out
    assert "manual" in shown.out
    assert "heartbeat" in cli.ask("runs", "heartbeat").out
    assert "disabled in the settings" in cli.ask("why", "heartbeat").out
    turn = cli.ask("runs", "heartbeat", "-o", "json").json["runs"][-1]
    assert "the kettle boils" in turn["reply"]
    assert turn["reasons"] == ["manual"]


def test_as_json(cli: Cli) -> None:
    """The answers of the daemon, and nothing else."""
    assert cli.run("wake", "--reason", "hook", "-o", "json").json in ({"coalesced": False}, {"coalesced": True})
    state = cli.ask("heartbeat", "-o", "json").json
    assert state["agent"] == "default"
    assert state["budget"]["turnsPerHourMax"] == 60
    assert "events" in cli.run("events", "-o", "json").json


def test_nothing_waits(cli: Cli) -> None:
    """A remark, not an empty table."""
    until(cli, "events", "-o", "json", holds='"events": []')
    said = cli.ask("events")
    assert (said.code, said.out) == (0, "")
    assert "no events are queued for the next turn" in said.err


def test_a_reason_that_is_none_is_refused(cli: Cli) -> None:
    """Before the daemon is asked."""
    assert cli.ask("wake", "--reason", "interval").code == 2


def test_a_turns_own_wake_is_told_apart(cli: Cli) -> None:
    """The command finds the address of its receipt, and asks in the name of its turn: a forged one is found out."""
    said = cli.run("wake", WAKEFUL_RECEIPT_URL="http://127.0.0.1:1/api/runs/1/receipt?token=forged")
    assert said.code == 1
    assert "the token does not belong to that run" in said.err
