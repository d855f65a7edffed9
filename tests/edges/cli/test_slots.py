"""`wakeful slots` and `/api/slots` on a daemon that is a process, over a provider that is a real server."""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from edges.cli.kit import Cli
from edges.http.kit import Daemon, daemon
from features.quota_kit import Account, Served, quota_server_beside
from patience import PATIENCE
from sampling import sampled
from wakeful.engine.clock import SystemClock

KEY = "sk-main-0123456789"
WITHIN = PATIENCE


def now() -> int:
    return SystemClock().read().now


class Place(NamedTuple):
    """A home, its daemon, and the provider it asks."""

    cli: Cli
    daemon: Daemon
    served: Served

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.daemon.address + path, data=data, method=method)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                text = answer.read()
                return answer.status, json.loads(text) if text else None
        except urllib.error.HTTPError as refused:
            return refused.code, json.loads(refused.read())

    def slot(self, name: str = "main") -> dict[str, Any]:
        status, body = self.ask("GET", f"/api/slots/{name}")
        assert status == 200, body
        found: dict[str, Any] = body
        return found

    def until(self, **wanted: Any) -> dict[str, Any]:
        """The slot, once it is so."""
        give_up = time.monotonic() + WITHIN
        while time.monotonic() < give_up:
            slot = self.slot()
            if all(slot[name] == value for name, value in wanted.items()):
                return slot
            time.sleep(0.05)
        raise AssertionError(f"{wanted} not reached: {slot}")

    def written(self) -> str:
        """Everything the daemon wrote that a person may read."""
        logs = sorted((self.cli.home / "logs").glob("*.jsonl"))
        files = [*logs, self.cli.home / "server.log"]
        return "".join(file.read_text() for file in files if file.exists())


@contextmanager
def place(tmp_path: Path, slots: str) -> Iterator[Place]:
    home = tmp_path / "home"
    home.mkdir()
    with quota_server_beside({KEY: Account(now)}) as served:
        (home / "wakeful.toml").write_text(slots.replace("URL", served.url))
        with daemon(home, environ={"GLM_KEY": KEY}) as running:
            yield Place(Cli(home), running, served)


MAIN = """
[slots.main]
api_key = {env = "GLM_KEY"}
base_url = "URL"
interval = "60m"
after_reset = "1m"
"""


def test_a_day_in_the_life_of_a_slot(tmp_path: Path) -> None:
    """Read, woken and confirmed at the start; listed, polled and woken by hand; an afterReset schedule gets its time;
    the log has its lines under flow ids; and the key is nowhere."""
    with place(tmp_path, MAIN) as at:
        slot = at.until(warm=True, wakePending=False)
        account = at.served.account(KEY)
        assert len(account.woken) == 1
        assert (slot["source"], slot["apiKey"], slot["enabled"], slot["wakeErrors"]) == ("settings", "••••", True, 0)
        assert {"percentage", "windowStart", "nextWake", "nextPoll", "updatedAt", "history"} <= slot.keys()
        listed = at.cli.ask("slots")
        assert listed.code == 0, listed.err
        assert "main" in listed.out
        assert "warm" in listed.out
        account.percentage = 42
        polled = at.cli.ask("slots", "poll", "main")
        assert (polled.code, "42 % used" in polled.out) == (0, True), polled
        woken = at.cli.ask("slots", "wake", "main")
        assert (woken.code, "woken and confirmed" in woken.out) == (0, True), woken
        added = at.cli.ask("add", "digest", "--after-reset", "main", "--offset", "5m", "--command", "true")
        assert added.code == 0, added.err
        _, schedule = at.ask("GET", "/api/schedule/digest")
        assert schedule["nextRun"] is not None
        assert schedule["nextRun"] > slot["nextResetTime"]
        runs = at.cli.ask("runs", "slot:main", "-o", "json")
        assert [run["outcome"] for run in runs.json["runs"]] == ["succeeded", "succeeded"], runs
        doctor = at.cli.ask("doctor", "-o", "json")
        assert [one["state"] for one in doctor.json["findings"] if one["what"] == "slots"] == ["ok"]
        metrics = urllib.request.urlopen(f"{at.daemon.address}/metrics", timeout=PATIENCE).read().decode()
        assert 'wakeful_slot_percentage{slot="main"} 42.0' in metrics
        assert 'wakeful_slot_warm{slot="main"} 1.0' in metrics
        at.daemon.end()
        written = at.written()
        lines = [json.loads(line) for line in written.splitlines() if line.startswith("{")]
        _judge_lines(lines)
        told = written + listed.out + polled.out + woken.out + json.dumps(slot) + metrics + runs.out + doctor.out
        assert KEY not in told


def _judge_lines(lines: list[dict[str, Any]]) -> None:
    """One flow id per exchange, shared by its two lines; the documented action names and moments."""
    of_slot = [line for line in lines if line.get("slot") == "main"]
    flows: dict[str, list[dict[str, Any]]] = {}
    for line in of_slot:
        if "flow_id" in line:
            flows.setdefault(line["flow_id"], []).append(line)
    assert len(flows) >= 4
    for pair in flows.values():
        assert [line["phase"] for line in pair] == ["request", "response"]
        assert len({line["action"] for line in pair}) == 1
        assert "duration_ms" in pair[1]
    actions = {line["action"] for line in of_slot}
    assert {
        "background-quota-poll",
        "scheduled-wake",
        "manual-wake",
        "quota-poller.wake-confirmed",
        "quota-poller.initial-wake-trigger",
        "wake.pending-set",
        "wake.pending-cleared",
        "wake.scheduler.task-started",
        "wake.scheduler.wake-attempt-success",
    } <= actions


def test_changed_settings_are_followed_without_a_restart(tmp_path: Path) -> None:
    """Live reload in the daemon: a saved file is enough."""
    with place(tmp_path, MAIN) as at:
        at.until(warm=True, wakePending=False)
        file = at.cli.home / "wakeful.toml"
        file.write_text(file.read_text().replace('interval = "60m"', 'interval = "3h"\npoll = "7m"'))
        slot = at.until(interval="3h", poll="7m")
        assert slot["nextWake"] > slot["updatedAt"]
        assert len(at.served.account(KEY).woken) == 1


@pytest.mark.parametrize(
    ("mood", "words"),
    sampled([("refused", "the key was refused"), ("broken", "not JSON"), ("down", "HTTP 500")], every=3),
)
def test_a_slot_in_trouble_says_so_everywhere_and_never_the_key(tmp_path: Path, mood: str, words: str) -> None:
    """`slots`, `doctor` and the log name the cause."""
    with place(tmp_path, MAIN.replace('interval = "60m"\nafter_reset = "1m"\n', "")) as at:
        at.served.account(KEY).mood = mood
        polled = at.cli.ask("slots", "poll", "main")
        assert polled.code == 1
        assert words in polled.err
        doctor = at.cli.ask("doctor", "-o", "json")
        (found,) = [one for one in doctor.json["findings"] if one["what"] == "slots"]
        assert words in found["words"]
        assert found["cure"]
        listed = at.cli.ask("slots")
        assert words in " ".join(listed.err.split())
        at.daemon.end()
        assert words in at.written()
        assert KEY not in at.written() + polled.err + doctor.out + listed.err


def test_slots_over_rest(tmp_path: Path) -> None:
    """Made, changed, refused, removed; those of the settings are read-only and 409 names the file."""
    with place(tmp_path, MAIN) as at:
        body = {"apiKey": KEY, "baseUrl": at.served.url, "poll": "10m"}
        status, made = at.ask("PUT", "/api/slots/mine", body)
        assert (status, made["source"], made["apiKey"], made["poll"]) == (201, "store", "••••", "10m")
        status, again = at.ask("PUT", "/api/slots/mine", {**made, "poll": "20m"})
        assert (status, again["poll"], again["version"]) == (200, "20m", 2)
        status, patched = at.ask("PATCH", "/api/slots/mine", {"interval": "2h"})
        assert (status, patched["interval"]) == (200, "2h")
        status, refused = at.ask("PUT", "/api/slots/other", {"apiKey": KEY, "interval": "5s"})
        assert (status, refused["errors"][0]["field"]) == (400, "interval")
        status, conflict = at.ask("PATCH", "/api/slots/main", {"poll": "5m"})
        assert (status, "wakeful.toml" in conflict["detail"]) == (409, True)
        assert at.ask("DELETE", "/api/slots/main")[0] == 409
        assert at.ask("GET", "/api/slots/nobody")[0] == 404
        assert [one["name"] for one in at.ask("GET", "/api/slots")[1]["slots"]] == ["main", "mine"]
        assert at.ask("POST", "/api/slots/mine/resume")[0] == 200
        assert at.ask("DELETE", "/api/slots/mine")[0] == 204
        assert at.ask("GET", "/api/slots/mine")[0] == 404
        at.daemon.end()
        assert KEY not in at.written()


def test_a_schedule_waits_for_the_quota_and_why_says_so(tmp_path: Path) -> None:
    """A run on an exhausted slot is waiting with reason quota."""
    with place(tmp_path, MAIN.replace('interval = "60m"\nafter_reset = "1m"\n', "")) as at:
        account = at.served.account(KEY)
        account.percentage = 100
        account.warm("3h")
        assert at.cli.ask("slots", "poll", "main").code == 0
        assert at.slot()["status"] == "exhausted"
        body = {
            "schedule": {"type": "every", "every": "10s"},
            "command": {"argv": ["true"]},
            "slot": "main",
        }
        assert at.ask("PUT", "/api/schedule/job", body)[0] == 201
        give_up = time.monotonic() + WITHIN
        while (view := at.ask("GET", "/api/schedule/job")[1])["status"] != "waiting":
            assert time.monotonic() < give_up, view
            time.sleep(0.1)
        assert view["statusReason"] == "quota"
        said = at.cli.ask("why", "job")
        assert "the quota of slot 'main' is used up" in " ".join(said.out.split())
        ran = at.cli.ask("run", "job")
        assert ran.code == 1  # it has an open run already


def test_usage_is_refused_in_words(tmp_path: Path) -> None:
    """What is no command, and a name that is missing or unknown."""
    with place(tmp_path, MAIN) as at:
        for arguments, code, words in (
            (("slots", "dance"), 1, "no slot 'dance'"),
            (("slots", "wake"), 2, "NAME"),
            (("slots", "add", "x", "--key-env", "A", "--key-file", "B"), 2, "more than one key given"),
            (("slots", "poll", "nobody"), 1, "no slot"),
            (("slots", "poll", "../x"), 1, "no slot"),
        ):
            said = at.cli.ask(*arguments)
            assert (said.code, words in said.err) == (code, True), said


def test_a_slot_is_added_shown_changed_and_removed_by_command(tmp_path: Path) -> None:
    """Its key is never shown; limits, calls, tokens and tools are; a schedule that names it when it is gone is told."""
    with place(tmp_path, "") as at:
        at.served.accounts["sk-typed-9876543210"] = Account(now)
        added = at.cli.ask(
            "slots", "add", "mine", "--key-stdin", "--base-url", at.served.url, "--interval", "60m",
            "--times", "07:30,13:00",
            feed="sk-typed-9876543210\n",
        )  # fmt: skip
        assert added.code == 0, added
        twice = at.cli.ask("slots", "add", "mine", "--key-env", "GLM_KEY")
        assert (twice.code, "wakeful slots edit mine" in twice.err) == (1, True), twice
        give_up = time.monotonic() + WITHIN
        while at.slot("mine")["stats"] is None and time.monotonic() < give_up:
            time.sleep(0.05)
        shown = at.cli.ask("slots", "mine")
        assert shown.code == 0, shown
        for words in (
            "added by command",
            "3,400 tokens",
            "12 calls",
            "network search 2",
            "tool calls per month: 10 of 1,000",
        ):
            assert words in shown.out, shown.out
        edited = at.cli.ask("slots", "edit", "mine", "--poll", "10m", "--unset", "interval", "--key-env", "GLM_KEY")
        assert edited.code == 0, edited
        slot = at.slot("mine")
        assert (slot["poll"], slot.get("interval"), slot["times"], slot["apiKey"]) == (
            "10m",
            None,
            ["07:30", "13:00"],
            "••••",
        )
        nothing = at.cli.ask("slots", "edit", "mine")
        assert (nothing.code, "no change given" in nothing.err) == (2, True), nothing
        bad = at.cli.ask("slots", "add", "other", "--key-env", "NOT_SET_ANYWHERE")
        assert (bad.code, "NOT_SET_ANYWHERE" in bad.err) == (2, True), bad
        assert at.cli.ask("add", "nightly", "--cron", "0 7 * * *", "--command", "true", "--set", "slot=mine").code == 0
        assert at.cli.ask("slots", "rm", "mine").code == 0
        gone = at.cli.ask("slots", "mine")
        assert (gone.code, "no slot 'mine'" in gone.err) == (1, True), gone
        doctor = at.cli.ask("doctor", "-o", "json")
        told = [one for one in doctor.json["findings"] if "slot mine is gone, and nightly names it" in str(one)]
        assert told, doctor.out
        assert "wakeful slots add mine" in str(told[0])
        everything = at.written() + added.out + shown.out + edited.out + doctor.out + json.dumps(slot)
        assert "sk-typed-9876543210" not in everything


def test_a_slot_of_the_settings_is_changed_in_its_file(tmp_path: Path) -> None:
    """By command as over REST: 409 names the file."""
    with place(tmp_path, MAIN) as at:
        for arguments in (("slots", "edit", "main", "--poll", "10m"), ("slots", "rm", "main")):
            said = at.cli.ask(*arguments)
            assert (said.code, "wakeful.toml" in said.err) == (1, True), said


@pytest.mark.torture
@pytest.mark.waits
def test_a_wake_that_cannot_be_sent_is_sent_when_the_provider_is_back(tmp_path: Path) -> None:
    """Nothing is disabled; `next` and `why` say when it is tried again, and it is."""
    home = tmp_path / "home"
    home.mkdir()
    account = Account(now)
    account.mood = "down"
    with quota_server_beside({KEY: account}) as served:
        (home / "wakeful.toml").write_text(MAIN.replace("URL", served.url))
        with daemon(home, environ={"GLM_KEY": KEY}) as running:
            at = Place(Cli(home), running, served)
            slot = at.until(unsent=1)
            assert (slot["disabled"], slot["wakeDisabled"], slot["quotaErrors"]) == (False, False, 0)
            assert "HTTP 500" in slot["lastError"]
            listed = at.cli.ask("next", "slot:main", "-o", "json").json["upcoming"]
            assert ("retry", slot["nextWake"]) in [(fire["kind"], fire["dueAt"]) for fire in listed]
            why = at.cli.ask("why", "slot:main")
            assert (why.code, "it will be sent again at" in why.out.replace("\n", " ")) == (0, True), why
            status, body = at.ask("GET", "/api/schedule/slot:main/why")
            assert (status, body["facts"]["unsent"]) == (200, 1)
            account.mood = "normal"
            assert at.until(warm=True, wakePending=False)["unsent"] == 0
            assert len(account.woken) == 1


@pytest.mark.torture
@pytest.mark.waits
def test_the_program_of_the_documentation_lets_a_schedule_after_its_reset_run(tmp_path: Path) -> None:
    """The very lines of docs/quota.md, without the part that needs an agent."""
    text = (Path(__file__).parents[3] / "docs" / "quota.md").read_text()
    toml = text.partition("<<'END'\n")[2].partition("END\n")[0]
    with place(tmp_path, toml) as at:
        added = at.cli.ask("add", "fresh", "--after-reset", "mine", "--offset", "10s", "--command", "echo a new window")
        assert added.code == 0, added
        give_up = time.monotonic() + 2 * WITHIN
        ran: list[Any] = []
        while not ran and time.monotonic() < give_up:
            ran = [run for run in at.ask("GET", "/api/schedule/fresh/runs")[1]["runs"] if run["outcome"] == "succeeded"]
            time.sleep(0.5)
        assert ran, at.ask("GET", "/api/schedule/fresh/why")
