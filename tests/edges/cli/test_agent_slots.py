"""The usage windows of an agent, from a turn of its program to `wakeful slots`, REST and the metrics."""

import json
import re
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents import replay
from edges.cli.kit import WITHIN, Cli, daemon


class Limited:
    """A home with an agent whose program replays a usage limit that ends in an hour."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "wakeful"
        self.home.mkdir(mode=0o700)
        self.player = replay.install(folder / "bin", "claude", "limit")
        recorded = replay.recording("claude", "limit").reset_at
        assert recorded is not None
        shift = int(time.time()) + 3_600 - recorded
        steps = folder / "bin" / "steps.json"
        text = steps.read_text()
        for reset in set(re.findall(r"resetsAt\W+(\d{10})", text)):  # of both windows: the longer one ends later
            text = text.replace(reset, str(int(reset) + shift))
        steps.write_text(text)
        settings = f'[agents.coder]\nadapter = "claude"\nprogram = "{self.player.path}"\n'
        (self.home / "wakeful.toml").write_text(settings)


@pytest.fixture
def limited(tmp_path: Path) -> Iterator[Limited]:
    yield Limited(tmp_path)


def test_a_limit_of_a_program_is_a_reading_of_its_slot(limited: Limited) -> None:
    """Claude Code reports that its five hours are used up: shown everywhere, and another schedule of the agent waits
    without starting the program."""
    with daemon(limited.home) as cli:
        assert cli.ask("add", "first", "--in", "1s", "--prompt", "hello", "--agent", "coder").code == 0
        cli.until(lambda: _newest(cli, "first").get("reason") == "quota")
        slot = cli.ask("slots", "agent-coder", "-o", "json").json
        assert (slot["status"], slot["percentage"], slot["source"]) == ("exhausted", 100, "agent")
        assert [limit["percentage"] for limit in slot["limits"]] == [100, 40]
        shown = cli.ask("slots", "agent-coder").out
        assert "reported by agent coder" in shown and "usage per 7 d: 40 % used" in shown
        assert "agent-coder" in cli.ask("slots").out
        assert 'wakeful_slot_percentage{slot="agent-coder"} 100' in _metrics(cli)
        assert cli.ask("slots", "poll", "agent-coder").code == 1
        assert cli.ask("add", "second", "--in", "1s", "--prompt", "hello", "--agent", "coder").code == 0
        cli.until(lambda: _newest(cli, "second").get("reason") == "quota")
        assert _newest(cli, "second")["outcome"] == "waiting"
        assert len(limited.player.calls()) == 1
        assert cli.ask("slots", "rm", "agent-coder").code == 0
        assert cli.ask("slots", "-o", "json").json == {"slots": []}


def _newest(cli: Cli, slug: str) -> dict[str, object]:
    runs = cli.ask("runs", slug, "-o", "json").json["runs"]
    return dict(runs[0]) if runs else {}


def _metrics(cli: Cli) -> str:
    address = json.loads((cli.home / "wakeful.lock").read_text())["address"]
    with urllib.request.urlopen(f"{address}/metrics", timeout=WITHIN) as response:
        text: str = response.read().decode()
    return text
