"""Settings that change while the daemon runs: the file is edited, and the effect is seen through the API."""

import inspect
import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from edges.http.kit import MANUAL, Daemon, daemon
from edges.http.test_daemon import ask
from patience import PATIENCE
from wakeful import Wakeful
from wakeful.app.bootstrap import FeatureContext
from wakeful.cli.main import root
from wakeful.config import Settings, load
from wakeful.ports.handlers import FeatureHooks
from wakeful.server.daemon.reload import Reload

WITHIN = PATIENCE
CODER = {"schedule": {"type": "times", "times": ["09:00"]}, "prompt": "hello", "agent": "coder"}


class House:
    """A daemon, and the file it is set by."""

    def __init__(self, one: Daemon) -> None:
        self.home = one.home
        self.address = one.address.replace("0.0.0.0", "127.0.0.1")
        self.token: str | None = None

    def ask(self, path: str, *, method: str = "GET", body: Any = None) -> tuple[int, Any]:
        return ask(self.address, path, method=method, body=body, token=self.token)

    @property
    def config(self) -> Any:
        return self.ask("/api/config")[1]

    def write(self, text: str) -> None:
        """Save the file as editors do: another one takes its place."""
        draft = self.home / "wakeful.toml~"
        draft.write_text(text)
        draft.replace(self.home / "wakeful.toml")

    def holds(self, text: str, name: str, value: Any) -> None:
        """Save the file, and wait until one of its values holds."""
        table, _, key = name.rpartition(".")
        self.write(text)

        def is_there() -> bool:
            found = self.config["settings"]
            for part in table.split("."):
                found = found.get(part, {})
            return bool(found.get(key) == value)

        until(is_there)

    def put(self, slug: str, definition: Any) -> int:
        return self.ask(f"/api/schedule/{slug}", method="PUT", body=definition)[0]

    def run(self, slug: str) -> Any:
        return self.ask(f"/api/schedule/{slug}/run?wait=true", method="POST")[1]

    def doctor(self) -> list[tuple[str, str]]:
        """What it finds about settings."""
        said = CliRunner().invoke(root, ["--home", str(self.home), "doctor", "-o", "json"])
        return [
            (one["state"], one["words"]) for one in json.loads(said.stdout)["findings"] if one["what"] == "settings"
        ]

    @property
    def log(self) -> str:
        return (self.home / "server.log").read_text()


def until(condition: Callable[[], object]) -> None:
    """Wait for a condition, not for a time."""
    deadline = time.monotonic() + WITHIN
    while not condition():
        assert time.monotonic() < deadline, "it did not come to be"
        time.sleep(0.05)


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with daemon(tmp_path / "home") as one:
        yield House(one)


def test_agents_come_change_and_go(house: House) -> None:
    """Without a restart; what names one that is gone fails with a text that says what to do."""
    assert house.put("ask", CODER) == 400
    house.holds('[agents.coder]\nadapter = "echo"\n', "agents.coder.adapter", "echo")
    assert house.put("ask", CODER) == 201
    assert "hello" in house.run("ask")["reply"]
    house.holds('[agents.coder]\nadapter = "command"\nargv = ["echo", "other"]\n', "agents.coder.adapter", "command")
    assert house.run("ask")["reply"] == "other"
    house.write("")
    until(lambda: "coder" not in house.config["settings"]["agents"])
    run = house.run("ask")
    assert (run["outcome"], run["error"]) == (
        "failed",
        "there is no agent 'coder'; add [agents.coder] to the settings, or use one of these: default",
    )
    assert "the settings in" in house.log
    assert "agents.coder" in house.log


def test_a_turn_under_way_keeps_its_agent_and_new_secrets_are_never_logged(house: House) -> None:
    """It ends with the one it began with; the next one asks the new one, whose key the log already knows to hide."""
    go = house.home / "go"
    script = f"until [ -e {go} ]; do sleep 0.05; done; echo old"
    waits = f'[agents.coder]\nadapter = "command"\nargv = ["sh", "-c", "{script}"]\n'
    house.holds(waits, "agents.coder.adapter", "command")
    house.put("ask", CODER)
    run_id = house.ask("/api/schedule/ask/run", method="POST")[1]["runId"]
    until(lambda: house.ask(f"/api/runs/{run_id}")[1]["rung"] == "started")
    key = house.home / "key"
    key.write_text("hide-me-please")
    key.chmod(0o600)
    fails = (
        '[agents.coder]\nadapter = "command"\nargv = ["sh", "-c", "echo $KEY >&2; exit 3"]\n'
        'env = {KEY = {file = "key"}}\nmodel = "new"\n'
    )
    house.holds(fails, "agents.coder.model", "new")
    go.touch()
    until(lambda: house.ask(f"/api/runs/{run_id}")[1]["outcome"] == "succeeded")
    assert house.ask(f"/api/runs/{run_id}")[1]["reply"] == "old"
    failed = house.run("ask")
    assert failed["outcome"] == "failed"
    until(lambda: f"run {failed['runId']} failed" in house.log)
    assert "hide-me-please" not in house.log
    assert "••••" in house.log


def test_limits_zone_and_files_follow(house: House) -> None:
    """Each of them, in one change."""
    old = datetime.now(UTC).date() - timedelta(days=3)
    aged = house.home / "logs" / f"{old}.jsonl"
    aged.write_text("{}\n")
    job = house.home / "schedule" / "job" / "definition.json"
    house.put("job", MANUAL)
    assert not job.exists()
    text = (
        '[limits]\nagent_interval_min = "20m"\nevery_min = "1m"\nconcurrency_max = 3\nbody_max = "2KiB"\n'
        'ledger_days = 7\nshutdown_grace = "5s"\n[schedules]\ntimezone = "Asia/Tokyo"\nmirror = "all"\n'
        "[log]\ndays = 1\n"
    )
    house.holds(text, "limits.concurrency_max", 3)
    assert house.put("often", {"schedule": {"type": "every", "every": "30m"}, "prompt": "new?"}) == 201
    assert house.put("tick", {"schedule": {"type": "every", "every": "1s"}, "command": {"argv": ["true"]}}) == 201
    assert house.ask("/api/schedule/tick")[1]["schedule"]["every"] == "1m"
    house.put("daily", {"schedule": {"type": "cron", "expression": "0 9 * * *"}, "command": {"argv": ["true"]}})
    assert house.ask("/api/schedule/daily")[1]["schedule"]["timezone"] == "Asia/Tokyo"
    assert house.put("large", {**MANUAL, "description": "x" * 4_096}) == 413
    until(lambda: [node["capacity"] for node in house.ask("/api/nodes")[1]["nodes"]] == [3])
    until(job.exists)
    until(lambda: not aged.exists())
    house.holds('[schedules]\nmirror = "off"\n', "schedules.mirror", "off")
    house.put("unseen", MANUAL)
    assert house.put("often", {"schedule": {"type": "every", "every": "30m"}, "prompt": "now?"}) == 400
    house.holds('[schedules]\nmirror = "all"\n', "schedules.mirror", "all")
    until((house.home / "schedule" / "unseen" / "definition.json").exists)


def test_standby_is_switched_on_and_off(house: House) -> None:
    """Instants are skipped meanwhile, `why` says so, and afterwards it goes on."""
    often = '[limits]\nevery_min = "500ms"\n'
    house.holds(often, "limits.every_min", "500ms")
    house.put("tick", {"schedule": {"type": "every", "every": "500ms"}, "command": {"argv": ["true"]}})

    def outcomes() -> list[tuple[str, str | None]]:
        return [(run["outcome"], run["reason"]) for run in house.ask("/api/schedule/tick/runs")[1]["runs"]]

    until(lambda: ("succeeded", None) in outcomes())
    house.holds(f"{often}[schedules]\nenabled = false\n", "schedules.enabled", False)
    until(lambda: outcomes()[0] == ("skipped", "standby"))
    assert "switched off (standby)" in house.ask("/api/schedule/tick/why")[1]["sentence"]
    house.holds(often, "schedules.enabled", True)
    until(lambda: outcomes()[0] == ("succeeded", None))


def test_what_needs_a_restart_is_said_and_stays(house: House) -> None:
    """In the answer, the log and by doctor; until it is written as it was."""
    text = '[server]\nhost = "localhost"\n[store]\nurl = "sqlite:///other.db"\n[limits]\nconcurrency_max = 9\n'
    house.holds(text, "limits.concurrency_max", 9)
    config = house.config
    assert config["restart"] == [
        {"name": "server.host", "now": "127.0.0.1", "written": "localhost"},
        {"name": "store.url", "now": "sqlite:///wakeful.db", "written": "sqlite:///other.db"},
    ]
    assert config["settings"]["store"]["url"] == "sqlite:///wakeful.db"
    assert config["sources"]["store.url"] == {"from": "default"}
    assert not (house.home / "other.db").exists()
    until(lambda: "store.url is 'sqlite:///other.db' in the file, but stays" in house.log)
    found = house.doctor()
    assert (
        "warning",
        "store.url is sqlite:///other.db in the file, but the daemon still uses sqlite:///wakeful.db",
    ) in found
    house.write("")
    until(lambda: house.config["restart"] == [])
    assert house.config["settings"]["limits"]["concurrency_max"] == 64


def test_a_bad_change_is_reported_in_full_and_changes_nothing(house: House) -> None:
    """All faults at once; the good line among them does not hold either; corrected, nothing is left of it."""
    good = "[limits]\nconcurrency_max = 5\n"
    house.holds(good, "limits.concurrency_max", 5)
    house.write('[limits]\nconcurrency_max = 7\nbody_max = "huge"\n[schedules]\ntimezone = "Mars/Olympus"\n')
    until(lambda: house.config["refused"])
    config = house.config
    assert [one.split(":")[0] for one in config["refused"]] == ["line 3", "line 5"], config["refused"]
    assert config["settings"]["limits"]["concurrency_max"] == 5
    assert house.ask("/readyz")[0] == 200
    until(lambda: "are invalid; the previous ones stay in effect" in house.log)
    assert "Mars/Olympus" in house.log
    states = [state for state, words in house.doctor() if "keeps the previous settings" in words]
    assert states == ["wrong"]
    house.write(good)
    until(lambda: house.config["refused"] == [])


def test_a_token_is_replaced_and_an_open_door_is_never_left_without_one(tmp_path: Path) -> None:
    """The old one is refused from then on; without any, the last one counts until the restart."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "wakeful.toml").write_text('[server]\nhost = "0.0.0.0"\ntoken = "the-first-token"\n')
    with daemon(home) as one:
        house = House(one)
        house.token = "the-first-token"
        assert house.ask("/api/schedule")[0] == 200
        house.write('[server]\nhost = "0.0.0.0"\ntoken = "the-second-token"\n')
        until(lambda: house.ask("/api/schedule")[0] == 401)
        house.token = "the-second-token"
        assert house.ask("/api/schedule")[0] == 200
        house.write('[server]\nhost = "127.0.0.1"\n')
        until(lambda: house.config["restart"])
        assert [held["name"] for held in house.config["restart"]] == ["server.host", "server.token"]
        assert "the-second-token" not in str(house.config)
        house.token = None
        assert house.ask("/api/schedule")[0] == 401


async def test_a_part_that_fails_is_reported_and_the_others_are_told(tmp_path: Path) -> None:
    """In the order they began to listen, with the old and the new settings; the next good change clears it."""
    told: list[tuple[str, int, int]] = []
    reload = Reload(load(tmp_path))

    def listening(name: str, error: Exception | None = None) -> Callable[[Settings, Settings], None]:
        def hear(old: Settings, new: Settings) -> None:
            told.append((name, old.limits.concurrency_max, new.limits.concurrency_max))
            if error is not None and new.limits.concurrency_max == 7:
                raise error

        return hear

    async def heard_later(old: Settings, new: Settings) -> None:
        listening("later")(old, new)

    reload.listen("first", listening("first", RuntimeError("out of order")))
    reload.listen("second", heard_later)
    (tmp_path / "wakeful.toml").write_text("[limits]\nconcurrency_max = 7\n")
    await reload.changed(load(tmp_path))
    assert told == [("first", 64, 7), ("later", 64, 7)]
    assert reload.standing(None).failed == ("first: RuntimeError: out of order",)
    assert reload.loaded.settings.limits.concurrency_max == 7
    (tmp_path / "wakeful.toml").write_text("[limits]\nconcurrency_max = 8\n")
    await reload.changed(load(tmp_path))
    assert told[2:] == [("first", 7, 8), ("later", 7, 8)]
    assert reload.standing(None).failed == ()


async def test_a_feature_listens_by_its_plug(tmp_path: Path) -> None:
    """What it plugs in is handed on to whoever watches the settings."""
    heard: list[tuple[object, object]] = []

    async def feature(_: FeatureContext) -> FeatureHooks:
        return FeatureHooks(on_settings=[lambda old, new: heard.append((old, new))])

    async with Wakeful(tmp_path / "wakeful.db", features=[feature]) as app:
        for listener in app._open.on_settings:
            answer = listener("old", "new")
            if inspect.isawaitable(answer):
                await answer
    assert heard == [("old", "new")]
