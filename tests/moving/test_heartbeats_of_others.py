"""The heartbeat of OpenClaw and Open Alice as lines for wakeful.toml, and what an OpenClaw job says besides."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from edges.cli.kit import Cli, daemon
from moving.kit import read, year_of
from wakeful.config import load
from wakeful.core.time.instants import DAY
from wakeful.integrations.imports.entries import masked, masked_json

BEAT = {
    "enabled": True, "every": "45m", "prompt": "Read HEARTBEAT.md. Reply ALL_QUIET if nothing is up.",
    "ackToken": "ALL_QUIET", "ackMaxChars": 200,
    "activeHours": {"start": "9:00", "end": "22:30", "timezone": "Asia/Shanghai"},
}  # fmt: skip
JOB: dict[str, Any] = {
    "id": "x", "schedule": {"kind": "cron", "expr": "0 9 * * *", "tz": "UTC"},
    "payload": {"kind": "agentTurn", "message": "Hi"},
}  # fmt: skip


def accepted(folder: Path, lines: str) -> Any:
    """The heartbeat that these lines make, read by the settings reader itself."""
    home = folder / "home"
    home.mkdir()
    (home / "wakeful.toml").write_text(f'[agents.default]\nadapter = "echo"\n\n{lines}')
    return load(home).settings.heartbeat


def test_open_alices_heartbeat(tmp_path: Path) -> None:
    """Every field of its settings; the token in the prompt stays the token."""
    (tmp_path / "data" / "config").mkdir(parents=True)
    (tmp_path / "data" / "config" / "scheduler.json").write_text(json.dumps({"heartbeat": BEAT}))
    (entry,) = read("openalice", tmp_path)
    assert entry.is_skipped and entry.settings is not None and "ALL_QUIET" in entry.source
    beat = accepted(tmp_path, entry.settings)
    assert (beat.enabled, beat.every, beat.ack_token, beat.ack_chars_max) == (True, 45 * 60_000, "ALL_QUIET", 200)
    assert beat.full_prompt == BEAT["prompt"] and beat.active_hours.start == "09:00"
    assert (beat.active_hours.end, beat.active_hours.timezone) == ("22:30", "Asia/Shanghai")


@pytest.mark.parametrize(
    ("beat", "said"),
    [({"every": "soon"}, "'soon'"), ({"activeHours": {"start": "25:00", "end": "3:00"}}, "is not a time of day")],
)
def test_a_heartbeat_that_has_no_lines(beat: dict[str, Any], said: str) -> None:
    """It is still named, with the reason."""
    (entry,) = read("openalice", content=json.dumps({"heartbeat": beat}))
    assert entry.settings is None and said in str(entry.refused)


def test_openclaws_heartbeat(tmp_path: Path) -> None:
    """The row of its store says how often, its settings the rest; switched off there, it is off here."""
    row = {
        "id": "h", "name": "heartbeat-main", "enabled": True, "payload": {"kind": "heartbeat"},
        "schedule": {"kind": "every", "everyMs": 1_800_000, "anchorMs": 0},
    }  # fmt: skip
    (tmp_path / "cron").mkdir()
    (tmp_path / "cron" / "jobs.json").write_text(json.dumps({"jobs": [row]}))
    (bare,) = read("openclaw", tmp_path)
    assert bare.settings == '[heartbeat]\nenabled = true\nevery = "30m"\n' and bare.is_skipped
    settings = {"agents": {"defaults": {"heartbeat": {"every": "1h", "model": "small", "target": "last"}}}}
    (tmp_path / "openclaw.json").write_text(json.dumps(settings))
    (entry,) = read("openclaw", tmp_path)
    assert entry.settings is not None
    beat = accepted(tmp_path, entry.settings)
    assert (beat.every, beat.model) == (3_600_000, "small")
    (tmp_path / "openclaw.json").write_text("{ // comments\n}")
    assert read("openclaw", tmp_path)[0].settings == bare.settings


def test_an_ack_token_is_no_secret() -> None:
    """Other tokens are."""
    assert masked_json({"ackToken": "HEARTBEAT_OK", "token": "abc"}) == {"ackToken": "HEARTBEAT_OK", "token": "***"}
    assert masked("ack_token=HEARTBEAT_OK api_token=abc") == "ack_token=HEARTBEAT_OK api_token=***"


@pytest.mark.parametrize(
    ("name", "fields"), [("@daily", "0 0 * * *"), ("@hourly", "0 * * * *"), ("@Weekly", "0 0 * * 0")]
)
def test_openclaws_names_of_times(name: str, fields: str) -> None:
    """As croner reads them."""
    (named,) = read("openclaw", content=json.dumps([{**JOB, "schedule": {"kind": "cron", "expr": name, "tz": "UTC"}}]))
    (plain,) = read(
        "openclaw", content=json.dumps([{**JOB, "schedule": {"kind": "cron", "expr": fields, "tz": "UTC"}}])
    )
    assert year_of(named) == year_of(plain) and named.options.get("stagger") == plain.options.get("stagger")


@pytest.mark.parametrize(
    ("alert", "becomes", "dropped"),
    [
        ({"after": 3, "channel": "telegram"}, {"errors": 3, "channel": "telegram"}, ()),
        ({"after": 2, "cooldownMs": 60_000}, {"errors": 2}, ("failureAlert.cooldownMs",)),
        (False, False, ()),
    ],
)
def test_openclaws_failure_alert(alert: Any, becomes: Any, dropped: tuple[str, ...]) -> None:
    """After how many errors in a row, and where; `false` is never."""
    job = {**JOB, "failureAlert": alert}
    (entry,) = read("openclaw", content=json.dumps([job]), channels=frozenset({"telegram"}))
    assert entry.options["alert"] == becomes and entry.not_carried == dropped


def test_openclaws_sessions_and_models(tmp_path: Path) -> None:
    """A session that is only known where the job was made is refused; the model of the agent is named."""
    for target, said in (
        ("current", "its session is 'current'"),
        ("isolated", None),
        ("session:abc", None),
        ("main", None),
    ):
        (entry,) = read("openclaw", content=json.dumps([{**JOB, "sessionTarget": target}]))
        assert (said is None) == (entry.refused is None) and (said or "") in str(entry.refused or "")
    (tmp_path / "jobs.json").write_text(
        json.dumps([JOB, {**JOB, "id": "y", "payload": {**JOB["payload"], "model": "own"}}])
    )
    agents = {"list": [{"id": "main", "model": {"primary": "anthropic/big"}}], "defaults": {"model": "other"}}
    (tmp_path / "openclaw.json").write_text(json.dumps({"agents": agents}))
    plain, own = read("openclaw", tmp_path)
    assert (
        plain.notes == ("its agent has the model anthropic/big there: set it in [agents.default]",) and own.notes == ()
    )


def test_open_alices_queued_deliveries_are_sent_once(tmp_path: Path) -> None:
    """Adopted with their ids: a second import sends nothing again. One for an unknown channel, or an old one, is
    refused."""
    queue = tmp_path / "alice" / "data" / "delivery-queue"
    queue.mkdir(parents=True)
    now = round(time.time() * 1000)
    for name, message in {
        "6f1c": {"channel": "telegram", "to": "42", "text": "The report is ready", "enqueuedAt": now, "retryCount": 1},
        "7a2d": {"channel": "discord", "to": "1", "text": "Lost", "enqueuedAt": now},
        "8b3e": {"channel": "telegram", "to": "42", "text": "Old", "enqueuedAt": now - 3 * DAY},
    }.items():
        (queue / f"{name}.json").write_text(json.dumps(message))
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "wakeful.toml").write_text('[channels.telegram]\ntype = "inbox"\n')
    (home / "wakeful.toml").chmod(0o600)
    alice = str(tmp_path / "alice")
    with daemon(home) as cli:
        assert "1 create, 2 refused" in cli.ask("import", "openalice", alice).out
        done = cli.ask("-o", "json", "import", "openalice", alice, "--apply").json["entries"]
        assert [entry["action"] for entry in done] == ["create", "refused", "refused"]
        assert "add a channel named discord" in done[1]["reason"] and "too long ago" in done[2]["reason"]
        assert "sends it as well" in done[0]["notes"][0]
        assert "1 unchanged" in cli.ask("import", "openalice", alice, "--apply").out
        Cli.until(lambda: "The report is ready" in cli.ask("-o", "json", "inbox").out)

        def sent() -> list[tuple[str, str]]:
            delivered = cli.ask("-o", "json", "outbox", "--status", "delivered").json["deliveries"]
            return [(one["channel"], one["to"]) for one in delivered]

        Cli.until(sent)
        assert sent() == [("telegram", "42")]
        refused = cli.ask("import", "openalice", alice, "--disable-source").out
        assert "it cannot be switched off from here" in refused and "3 refused" in refused
