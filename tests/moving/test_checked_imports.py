"""What is created has been checked, and what would be lost is refused, each entry alone."""

import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from dateutil.rrule import rrulestr

from edges.http.kit import served
from moving.kit import BASE, STARTS, read
from moving.stand_ins import Machine
from wakeful.core.time.instants import parse_instant
from wakeful.integrations.agents.call import CallAgent
from wakeful.integrations.imports.entries import Context, Entry
from wakeful.integrations.imports.runnable import unrunnable
from wakeful.ports.agent import Agent

PAST, FUTURE = "2020-01-01T09:00:00Z", "2099-01-01T09:00:00Z"


def agents(_: Any, registry: Any) -> dict[str, Agent]:
    registry.register("work", lambda prompt: "done")
    return {"default": CallAgent("work", registry)}


def one_shots(kind: str) -> str:
    """Three jobs of a source: one whose time is over, the same switched off, and one to come."""
    jobs: list[dict[str, Any]] = []
    for name, at, is_on in (("over", PAST, True), ("off", PAST, False), ("ahead", FUTURE, True)):
        schedule = {"kind": "once", "run_at": at} if kind == "hermes" else {"kind": "at", "at": at}
        action = {"prompt": "Hi"} if kind == "hermes" else {"payload": {"kind": "systemEvent", "text": "Hi"}}
        if kind == "openclaw":
            action = {"payload": {"kind": "command", "argv": ["true"]}}
        if kind == "openalice":
            action = {"sessionTarget": "isolated", "payload": "Hi"}
        jobs.append({"id": name, "name": name, "enabled": is_on, "schedule": schedule, **action})
    return json.dumps({"jobs": jobs})


@pytest.mark.parametrize("kind", ["openclaw", "hermes", "openalice"])
async def test_a_one_shot_whose_time_is_over_is_refused_alone(tmp_path: Path, kind: str) -> None:
    """Also one that is switched off; the rest is imported, and importing again changes nothing."""
    async with served(tmp_path, agents=agents) as api:
        body = {"kind": kind, "content": one_shots(kind)}
        for actions in (["refused", "refused", "create"], ["refused", "refused", "unchanged"]):
            done = await api.post("/api/import?apply=true", body)
            assert done.status == 200, done.body
            assert [entry["action"] for entry in done.body["entries"]] == actions
            assert [entry["reason"] for entry in done.body["entries"][:2]] == [
                "its time, 2020-01-01T09:00:00.000Z, is over"
            ] * 2
        assert [one["slug"] for one in (await api.get("/api/schedule")).body["schedules"]] == ["ahead"]


async def test_an_agents_interval_names_the_limit_to_lower(tmp_path: Path) -> None:
    """Here as in the answer to a PUT."""
    job = {"id": "x", "prompt": "Hi", "schedule": {"kind": "interval", "minutes": 5}}
    async with served(tmp_path, agents=agents) as api:
        done = (await api.post("/api/import", {"kind": "hermes", "content": json.dumps([job])})).body
        assert "lower limits.agent_interval_min in wakeful.toml" in done["entries"][0]["reason"]


INTERVALS = {
    "hermes": '[{"id": "x", "prompt": "Hi", "schedule": {"kind": "interval", "minutes": 90}}]',
    "openalice": '{"jobs": [{"id": "x", "schedule": {"kind": "every", "every": "2h"}, "payload": "Hi"}]}',
    "systemd": "[Timer]\nOnBootSec=5min\nOnUnitActiveSec=1h\n[Service]\nExecStart=/bin/true\n",
}


@pytest.mark.parametrize("kind", INTERVALS)
async def test_an_interval_that_began_at_an_unknown_time_is_imported_once(tmp_path: Path, kind: str) -> None:
    """It counts from its import; importing it again does not begin it again."""
    async with served(tmp_path, agents=agents) as api:
        seen = []
        for action in ("create", "unchanged"):
            done = await api.post("/api/import?apply=true", {"kind": kind, "content": INTERVALS[kind]})
            assert [entry["action"] for entry in done.body["entries"]] == [action], done.body
            seen.append((await api.get(f"/api/schedule/{done.body['entries'][0]['slug']}")).body["nextRun"])
        assert seen[0] == seen[1]


# --- commands ---------------------------------------------------------------------------------------------------------


def refusal(machine: Machine, line: str) -> str | None:
    """Why a line of a crontab would not run on this machine."""
    (entry,) = read("crontab", content=f"0 1 * * * {line}\n", **machine.context())
    assert entry.refused is None, entry.refused
    return unrunnable(entry, _context(machine))


def _context(machine: Machine) -> Context:
    return replace(BASE, **machine.context())


@pytest.mark.parametrize(
    "line",
    [
        "here --now",
        "cd tools && ./local",
        "cd /tmp && here",
        "A=1 B='2 3' here > /dev/null 2>&1 &",
        "here | here | here",
        "test -x /no/such || here",
        "test -x /no/such || { cd / && here; }",
        "if [ -x /no/such ]; then /no/such; fi",
        "[ -f /no/flag ] && here",
        "test -e /no/such || A=1 /no/such -x",
        "$HOME/bin/here; `which here`",
        "~/bin/here",
        "find . -name '*.tmp' -exec here {} \\;",
        "here 'unbalanced",
        "(cd /no/such && here)",
        "command -v no-such || true",
        ". /no/such-$NAME; here",
        "python3 -m no_such_module",
        "python3 -c 'import no_such'",
        "echo 5 > /tmp/x",
        "exec here",
    ],
)
def test_a_line_that_may_run_is_not_refused(tmp_path: Path, line: str) -> None:
    """Only what certainly runs, and is certainly missing, is held against it."""
    machine = Machine(tmp_path).install("here")
    machine.install("local", into=tmp_path / "tools")
    assert refusal(machine, line) is None


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("no-such-program", "'no-such-program' was not found on the PATH"),
        ("/serverUp.sh", "'/serverUp.sh' does not exist"),
        ("here && no-such-program", "no-such-program"),
        ("here | no-such-program", "no-such-program"),
        ("A=1 no-such-program >/dev/null 2>&1", "no-such-program"),
        ("exec no-such-program", "no-such-program"),
        ("cd /no/such && here", "its folder '/no/such' does not exist"),
        ("cd tools && ./missing", "'./missing' does not exist"),
        ("bash tools/missing.sh", "'tools/missing.sh' does not exist"),
        ("python3 -u /no/such.py", "'/no/such.py' does not exist"),
        ("~/bin/missing", "bin/missing' does not exist"),
        ("./notes.txt", "is not executable"),
        ("test -x /no/such || exit 0; /no/such daily", "it does nothing without '/no/such'"),
        ("[ -x /no/such ] && /no/such daily", "it does nothing without '/no/such'"),
        ("test -x /no/such -a ! -d /run/systemd/system && /no/such", "it does nothing without '/no/such'"),
        ("command -v no-such-program > /dev/null && here", "no-such-program"),
        (". /no/such/profile; here", "'/no/such/profile' does not exist"),
    ],
)
def test_a_line_that_cannot_run_is_refused(tmp_path: Path, line: str, said: str) -> None:
    """With what is missing. Nothing is executed."""
    machine = Machine(tmp_path).install("here")
    machine.install("local", into=tmp_path / "tools")
    (tmp_path / "notes.txt").write_text("")
    assert said in str(refusal(machine, line))
    assert machine.heard("here") == []


def test_a_table_in_system_format_is_known_by_its_users(tmp_path: Path) -> None:
    """Outside /etc too, if each line has a user of this machine. A single such line is refused with the reason."""
    users = frozenset({"root", "me", "mail"})
    own, other = read("crontab", content="0 1 * * * me true\n0 2 * * *\troot\ttrue\n", users=users)
    assert own.action["command"]["argv"] == ["sh", "-c", "true"] and "it runs as root" in str(other.refused)
    mixed, fine = read("crontab", content="*/5 * * * * root /serverUp.sh\n0 1 * * * true\n", users=users)
    assert "root is a user, not a program" in str(mixed.refused) and fine.refused is None
    program = Machine(tmp_path).install("mail")
    (entry,) = read("crontab", content="0 1 * * * mail -s x me\n", users=users, **program.context())
    assert entry.action["command"]["argv"] == ["sh", "-c", "mail -s x me"]


async def test_mail_that_would_reach_no_one_is_refused(tmp_path: Path) -> None:
    """MAILTO is an address; without a channel for it, its lines are refused, with the cure."""
    async with served(tmp_path) as api:
        table = 'MAILTO=ops@example.org\n0 1 * * * true\nMAILTO=""\n0 2 * * * true\n'
        first, second = (await api.post("/api/import", {"kind": "crontab", "content": table})).body["entries"]
        assert "mailed to ops@example.org: add a channel named mail" in first["reason"]
        assert second["action"] == "create"


# --- systemd ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("OnCalendar=daily\nOnBootSec=10min", "it also starts by OnBootSec"),
        ("OnCalendar=daily\nOnUnitInactiveSec=1h", "it also starts by OnUnitInactiveSec"),
        ("OnCalendar=daily\nOnTimezoneChange=true", "it also starts by OnTimezoneChange"),
        ("OnCalendar=daily\nOnClockChange=no", None),
        ("OnBootSec=15min\nOnUnitActiveSec=1d", None),  # the interval begins with the machine there
    ],
)
def test_a_timer_with_another_trigger_is_refused(tmp_path: Path, lines: str, said: str | None) -> None:
    """It would never start that way again."""
    (tmp_path / "a.timer").write_text(f"[Timer]\n{lines}\n")
    (tmp_path / "a.service").write_text("[Service]\nExecStart=/bin/true\n")
    (entry,) = read("systemd", tmp_path)
    assert entry.refused is None if said is None else said in str(entry.refused)


# --- switching off ----------------------------------------------------------------------------------------------------


async def test_a_source_that_is_switched_off_whole_needs_all_its_entries(tmp_path: Path) -> None:
    """A timer with two lines is one unit, and the same line twice is one comment: nothing that was not imported may end
    with it."""
    table = tmp_path / "table"
    table.write_text("0 1 * * * true\n0 2 * * * true\n0 1 * * * true\n")
    async with served(tmp_path) as api:
        body = {"kind": "crontab", "path": str(table), "except": ["true-3"]}
        entries = (await api.post("/api/import?disableSource=true", body)).body["entries"]
        assert [entry["action"] for entry in entries] == ["refused", "create"]
        assert "it can only be switched off together with" in entries[0]["reason"]
        whole = (await api.post("/api/import?disableSource=true", {**body, "except": []})).body["entries"]
        assert [entry["action"] for entry in whole] == ["create"] * 3


# --- Codex ------------------------------------------------------------------------------------------------------------

RULES = (
    "DTSTART;TZID=Asia/Shanghai:20260710T103500\nRRULE:FREQ=DAILY",
    "DTSTART;TZID=America/New_York:20260701T083000\nRRULE:FREQ=WEEKLY;BYDAY=MO,WE",
    "DTSTART;TZID=Europe/Paris:20260706T070000\nRRULE:FREQ=WEEKLY",
    "DTSTART:20260710T060000Z\nRRULE:FREQ=MONTHLY",
    "DTSTART;TZID=Asia/Tokyo:20260710T060000\nRRULE:FREQ=DAILY;BYHOUR=9,17;BYMINUTE=30",
    "DTSTART:20260710T101500\nRRULE:FREQ=YEARLY",
    "RRULE:FREQ=DAILY;BYHOUR=9;BYMINUTE=0\nDTSTART;TZID=Asia/Kolkata:20260101T000000",
)


def automation(folder: Path, rule: str, more: str = "") -> Entry:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "automation.toml").write_text(f'status = "ACTIVE"\nrrule = {json.dumps(rule)}\nprompt = "Go"\n{more}')
    (entry,) = read("codex", folder / "automation.toml")
    return entry


@pytest.mark.parametrize("rule", RULES)
def test_the_times_of_a_rule_with_a_start_are_those_of_dateutil(tmp_path: Path, rule: str) -> None:
    """In the zone of DTSTART, with what the rule leaves out taken from it."""
    entry = automation(tmp_path / "a", rule)
    assert entry.refused is None and entry.times is not None
    zone = ZoneInfo(entry.schedule["timezone"])
    known = rrulestr("\n".join(sorted(rule.split("\n"))))  # it wants DTSTART first
    for start in STARTS:
        after = datetime.fromtimestamp(start / 1000, zone)
        is_aware = known._dtstart.tzinfo is not None  # type: ignore[attr-defined]  # a floating rule takes naive times
        walls = known.xafter(after if is_aware else after.replace(tzinfo=None), count=40)
        aware = [wall if is_aware else wall.replace(tzinfo=zone) for wall in walls]
        expected = [round(wall.timestamp() * 1000) for wall in aware]
        assert list(entry.times(start, 40)) == expected, rule


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("DTSTART;TZID=Asia/Shanghai:20261201T090000\nRRULE:FREQ=DAILY", "not begin before 2026-12-01T01:00:00.000Z"),
        ("DTSTART;TZID=Mars/Phobos:20260101T090000\nRRULE:FREQ=DAILY", "not a time in a known zone"),
        ("DTSTART;VALUE=DATE:20260101\nRRULE:FREQ=DAILY;BYHOUR=9", "cannot be expressed"),
        ("DTSTART:20260101T090000\nRRULE:FREQ=DAILY\nEXDATE:20261225T090000", "EXDATE:20261225T090000 cannot be"),
        ("RRULE:FREQ=HOURLY;COUNT=5", "COUNT=5"),
        ("RRULE:FREQ=DAILY;BYHOUR=9;UNTIL=20270101T000000Z", "UNTIL"),
    ],
)
def test_what_a_rule_would_lose_is_refused(tmp_path: Path, rule: str, said: str) -> None:
    """A start that is still to come, an end, days that are left out."""
    assert said in str(automation(tmp_path / "a", rule).refused)


def test_a_rule_that_counts_to_one_begins_where_it_says(tmp_path: Path) -> None:
    """At DTSTART, or after it was created; never tomorrow again."""
    rule = "DTSTART;TZID=Asia/Shanghai:20261201T090000\nRRULE:FREQ=DAILY;COUNT=1"
    assert automation(tmp_path / "a", rule).schedule == {"type": "once", "at": "2026-12-01T01:00:00.000Z"}
    made = parse_instant("2026-10-01T00:00:00Z")
    over = automation(tmp_path / "b", "FREQ=DAILY;BYHOUR=9;COUNT=1", f"created_at = {made}\n")
    assert over.schedule == {"type": "once", "at": "2026-10-01T07:00:00.000Z"}


# --- Hermes and OpenClaw ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("job", "said"),
    [
        ({"script": "df -h", "no_agent": True}, "scripts/df -h does not exist"),
        ({"script": "../../etc/passwd", "no_agent": True}, "the only folder that Hermes runs scripts from"),
        ({"script": "/etc/passwd"}, "the only folder that Hermes runs scripts from"),
        ({"script": "x\0y"}, "is not a path"),
        ({"deliver": "discord:42"}, "its result goes to discord: add a channel named discord"),
        ({"deliver": "telegram,discord"}, "add a channel named discord"),
        ({"deliver": "all"}, "every connected platform"),
        ({"failure_deliver": "discord"}, "add a channel named discord"),
        ({"monitor_url": "https://example.org"}, "it starts by monitor_url"),
        ({"base_url": "https://example.org/v1"}, "a base_url of its own"),
    ],
)
def test_what_a_hermes_job_would_lose_is_refused(tmp_path: Path, job: dict[str, Any], said: str) -> None:
    """Its script, its address or its trigger."""
    (tmp_path / "scripts").mkdir()
    (tmp_path / "cron").mkdir()
    full = {"id": "x", "prompt": "Hi", "schedule": {"kind": "cron", "expr": "0 9 * * *"}, **job}
    (tmp_path / "cron" / "jobs.json").write_text(json.dumps({"jobs": [full]}))
    (entry,) = read("hermes", tmp_path, channels=frozenset({"telegram"}))
    assert said in str(entry.refused)


def test_a_hermes_job_is_delivered_where_it_was_asked_for() -> None:
    """`origin` is the chat it was created in; several targets are several recipients."""
    job = {
        "id": "x", "prompt": "Hi", "schedule": {"kind": "cron", "expr": "0 9 * * *"}, "deliver": "origin,slack:C1",
        "origin": {"platform": "telegram", "chat_id": 42},
    }  # fmt: skip
    (entry,) = read("hermes", content=json.dumps([job]), channels=frozenset({"telegram", "slack"}))
    assert entry.options["deliver"] == [{"channel": "telegram", "to": "42"}, {"channel": "slack", "to": "C1"}]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"agentId": "coder"}, "add [agents.coder] to wakeful.toml"),
        ({"delivery": {"mode": "announce", "channel": "discord", "to": "1"}}, "add a channel named discord"),
        ({"delivery": {"mode": "webhook", "to": "https://example.org"}}, "its delivery is 'webhook'"),
        ({"failureAlert": {"after": 3, "channel": "discord"}}, "add a channel named discord"),
        ({"trigger": {"kind": "file"}}, "it also starts by trigger"),
    ],
)
def test_what_an_openclaw_job_would_lose_is_refused(more: dict[str, Any], said: str) -> None:
    """Its agent, its address or its trigger; `main` is the agent that every home has."""
    job = {
        "id": "x", "agentId": "main", "schedule": {"kind": "cron", "expr": "0 9 * * *", "tz": "UTC"},
        "payload": {"kind": "agentTurn", "message": "Hi"},
    }  # fmt: skip
    (entry,) = read("openclaw", content=json.dumps([job]))
    assert entry.refused is None
    (entry,) = read("openclaw", content=json.dumps([{**job, **more}]))
    assert said in str(entry.refused)
