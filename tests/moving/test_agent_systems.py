"""OpenClaw, Hermes, Claude, Codex, Caco, Open Alice, GLM-Tray and Kubernetes."""

import json
import sqlite3
from datetime import datetime
from itertools import accumulate
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from dateutil.rrule import rrulestr

from moving.kit import BASE, CORPUS, STARTS, read
from wakeful.core.time.instants import DAY, MINUTE, parse_instant
from wakeful.core.time.timing import next_n, resolve
from wakeful.core.time.timing_json import read_timing
from wakeful.integrations.imports.entries import Entry, SourceRefused
from wakeful.integrations.imports.fitting import fit

OPENCLAW = CORPUS / "openclaw-jobs.json"


def agree(entries: list[Entry], starts: tuple[int, ...] = STARTS[1:5:3]) -> int:
    """The next hundred times of each entry are the same by the rules of its source and as our schedule."""
    compared = 0
    for entry in entries:
        if entry.refused is not None or entry.times is None:
            continue
        schedule, problem = fit(entry.schedule, entry.times, now=STARTS[0])
        assert problem is None, entry.source
        timing = resolve(read_timing(schedule), now=STARTS[0], default_zone="UTC")
        for start in starts:
            assert list(next_n(timing, start, 100)) == list(entry.times(start, 100)), (entry.source, schedule)
        compared += 1
    return compared


def by_ref(entries: list[Entry]) -> dict[str, Entry]:
    return {entry.ref: entry for entry in entries}


def database(path: Path) -> Path:
    """The jobs of the corpus in the newer store."""
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE cron_jobs (id TEXT PRIMARY KEY, job_json TEXT, state_json TEXT)")
    for job in json.loads(OPENCLAW.read_text())["jobs"]:
        state = job.pop("state")
        connection.execute("INSERT INTO cron_jobs VALUES (?, ?, ?)", (job["id"], json.dumps(job), json.dumps(state)))
    connection.commit()
    connection.close()
    return path


def test_openclaw_from_both_stores(tmp_path: Path) -> None:
    """The same entries; a job that is in both is read once."""
    agents = {"agents": frozenset({"coder"}), "channels": frozenset({"telegram"})}
    old = read("openclaw", OPENCLAW, **agents)
    new = read("openclaw", database(tmp_path / "openclaw.sqlite"), **agents)
    assert by_ref(old).keys() == by_ref(new).keys()
    for entry in old:
        other = by_ref(new)[entry.ref]
        assert (entry.schedule, entry.action, entry.options) == (other.schedule, other.action, other.options)
    (tmp_path / "cron").mkdir()
    (tmp_path / "cron" / "jobs.json").write_text(OPENCLAW.read_text())
    assert len(read("openclaw", tmp_path)) == len(old)
    moved = {"c01", "c16", "c26"}  # between 02:00 and 03:00: see below
    assert agree([entry for entry in old if entry.ref not in moved]) >= 40


def test_openclaw_field_by_field() -> None:
    """What each field becomes, and what is reported."""
    found = by_ref(read("openclaw", OPENCLAW, agents=frozenset({"coder"}), channels=frozenset({"telegram"})))
    full = found["x1"]
    assert full.action == {
        "prompt": "Summarise", "agent": "coder", "sessionConfig": {"model": "some-model", "persistSession": False},
    }  # fmt: skip
    assert full.options == {
        "timeout": "5m", "deliver": {"channel": "telegram", "to": "12345"}, "stagger": "1m30s",
    }  # fmt: skip
    assert set(full.not_carried) == {"thinking", "toolsAllow", "fallbacks"} and full.last_run == 1794812400000
    assert found["x2"].session == "abc-123" and "persistSession" not in found["x2"].action.get("sessionConfig", {})
    command = found["x3"].action["command"]
    assert command["env"] == {"LANG": "C"} and command["passEnv"] == ["API_KEY"] and command["stdin"] == "y\n"
    assert "sk-verysecretvalue" not in found["x3"].source
    assert "its delivery is 'webhook'" in str(found["x4"].refused) and found["x5"].is_paused
    assert found["c06"].options["stagger"] == "5m"  # `0 * * * *` without staggerMs
    assert found["a1"].schedule["at"] == "2027-02-01T16:00:00.000Z"  # no offset means UTC
    assert found["heartbeat"].is_skipped
    for ref, said in {"r1": "+", "r2": "on-exit", "r3": "script", "r4": "minute"}.items():
        assert said in str(found[ref].refused)
    hostile = found["'; DROP TABLE schedules; --"]
    assert hostile.refused is None and hostile.name == "etc-passwd"
    adopted = by_ref(read("openclaw", OPENCLAW, is_adopting=True))["c00"]
    assert adopted.action["command"]["argv"] == ["openclaw", "cron", "run", "c00"]


HERMES: dict[str, Any] = json.loads((CORPUS / "hermes-jobs.json").read_text())


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(HERMES),
        "\ufeff" + json.dumps(HERMES),
        json.dumps(HERMES["jobs"]),
        json.dumps({"jobs": {job["id"]: {k: v for k, v in job.items() if k != "id"} for job in HERMES["jobs"]}}),
    ],
)
def test_hermes_in_all_its_forms(tmp_path: Path, text: str) -> None:
    """A byte order mark, a bare list and a map by id occur."""
    folder = tmp_path / "cron"
    folder.mkdir()
    (folder / "jobs.json").write_text(text)
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    for name in ("disk.sh", "mail.py"):
        (scripts / name).write_text("echo\n")
    entries = read("hermes", tmp_path, channels=frozenset({"slack"}))
    found = by_ref(entries)
    assert agree(entries) == 5
    assert found["h1"].options["deliver"] == {"channel": "last"}
    assert found["h2"].schedule == {"type": "every", "every": "1h30m", "anchor": "2026-11-16T08:00:00.000Z"}
    assert found["h3"].schedule["at"] == "2027-01-01T07:00:00.000Z"  # the machine's zone
    assert found["h4"].action["command"] == {"argv": ["bash", str(scripts / "disk.sh")], "cwd": str(scripts)}
    assert found["h5"].options["deliver"] == {"channel": "slack", "to": "C1"}
    assert (
        found["h5"].is_paused
        and "repeat (3 of 5 left)" in found["h5"].not_carried
        and "skills" in found["h5"].not_carried
    )
    check = found["h5"].options["check"]["command"]
    assert check["argv"][1:] == [str(scripts / "mail.py")] and check["cwd"] == str(scripts)
    assert "as often" in str(found["h6"].refused) and "moon" in str(found["h7"].refused)


def recorded(name: str) -> list[tuple[str, str, int, list[int]]]:
    """What a library printed once: expression, zone, start, the next hundred times across a change of the clock."""
    found = []
    for line in (CORPUS / name).read_text().splitlines()[1:]:
        expression, zone, start, steps = line.split("\t")
        first = parse_instant(start)
        lengths: list[int] = []
        for step in steps.split():
            count, _, length = step.rpartition("*")
            lengths += [int(length) * 1000] * int(count or 1)
        found.append((expression, zone, first, [first + length for length in accumulate(lengths)]))
    return found


@pytest.mark.parametrize(("kind", "name"), [("openclaw", "croner-10.0.1.txt"), ("hermes", "croniter-6.2.4.txt")])
def test_the_times_of_the_library_that_the_source_uses(kind: str, name: str) -> None:
    """OpenClaw 2026.9 uses croner 10, and asks it for the next time after each run; Hermes uses croniter."""
    known = recorded(name)
    assert len(known) >= 100
    for expression, zone, start, times in known:
        job = {
            "id": "x", "prompt": "Hi", "payload": {"kind": "systemEvent", "text": "Hi"},
            "schedule": {"kind": "cron", "expr": expression, "tz": zone},
        }  # fmt: skip
        (entry,) = read(kind, content=json.dumps({"jobs": [job]}))
        assert entry.times is not None and len(times) == 100
        assert list(entry.times(start, 100)) == times, (expression, zone)


def test_a_time_that_openclaw_moves_by_an_hour_is_refused() -> None:
    """02:30 runs at 03:30 there on the day the clock goes forward, and would run at 03:00 here; 02:00 is the same."""
    for expression, is_same in (("30 2 * * *", False), ("0 2 * * *", True), ("*/20 2 * * *", True)):
        job = {
            "id": "x", "payload": {"kind": "systemEvent", "text": "Hi"},
            "schedule": {"kind": "cron", "expr": expression, "tz": "Europe/Berlin"},
        }  # fmt: skip
        (entry,) = read("openclaw", content=json.dumps({"jobs": [job]}))
        assert entry.times is not None
        _, problem = fit(entry.schedule, entry.times, now=STARTS[0])
        assert (problem is None) == is_same
        assert is_same or "2027-03-28T01:30:00.000Z in the source, 2027-03-28T01:00:00.000Z here" in str(problem)


def test_claude_tasks_with_their_prompts(tmp_path: Path) -> None:
    """The prompt is in SKILL.md, without its front matter; an id that is no name is refused."""
    tasks = [
        {"id": "daily-review", "cronExpression": "0 9 * * 1-5", "cwd": "/srv", "model": "m",
         "permissionMode": "plan", "enabled": True},
        {"id": "later", "fireAt": "2027-01-01T08:00:00Z", "enabled": False},
        {"id": "no-prompt", "cronExpression": "0 9 * * *"},
        {"id": "../../etc/passwd", "cronExpression": "0 9 * * *"},
    ]  # fmt: skip
    (tmp_path / "scheduled-tasks.json").write_text(json.dumps({"scheduledTasks": tasks}))
    for name in ("daily-review", "later"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "SKILL.md").write_text("---\nname: x\n---\nReview the day.\n")
    found = by_ref(read("claude", tmp_path, agents=frozenset({"claude"})))
    assert found["daily-review"].action == {
        "prompt": "Review the day.", "agent": "claude", "sessionConfig": {"persistSession": False, "model": "m"},
    }  # fmt: skip
    cwd, mode = found["daily-review"].not_carried
    assert (cwd, mode) == ("cwd (set it to /srv in the settings of the agent)", "permissionMode")
    assert found["later"].is_paused
    assert "SKILL.md" in str(found["no-prompt"].refused) and found["../../etc/passwd"].refused
    assert agree(list(found.values())) == 2


RULES = {
    "FREQ=DAILY;BYHOUR=9;BYMINUTE=30": "30 9 * * *",
    "RRULE:FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=9,17;BYMINUTE=0": "0 9,17 * * 1,2,3,4,5",
    "FREQ=WEEKLY;BYDAY=SU;BYHOUR=2;BYMINUTE=30": "30 2 * * 0",
    "FREQ=MONTHLY;BYMONTHDAY=1,15;BYHOUR=8": "0 8 1,15 * *",
    "FREQ=HOURLY;BYMINUTE=15": "15 * * * *",
    "FREQ=YEARLY;BYMONTH=12;BYMONTHDAY=24;BYHOUR=18": "0 18 24 12 *",
    "FREQ=MINUTELY;INTERVAL=90": "1h30m",
    "FREQ=HOURLY;INTERVAL=6": "6h",
    "FREQ=DAILY;BYHOUR=9;COUNT=1": "2026-11-17T08:00:00.000Z",
    "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO;BYHOUR=9": None,
    "FREQ=WEEKLY;BYHOUR=9": None,
    "FREQ=DAILY": None,
    "FREQ=DAILY;BYHOUR=9;COUNT=5": None,
    "BYHOUR=9": None,
    "FREQ=MONTHLY;BYDAY=1MO;BYHOUR=9": None,
}


def test_codex_rules(tmp_path: Path) -> None:
    """An RRULE without a zone is local; what a schedule cannot say is refused."""
    for number, rule in enumerate(RULES):
        folder = tmp_path / f"a{number:02}"
        folder.mkdir()
        (folder / "automation.toml").write_text(
            f'kind = "cron"\nstatus = "{"PAUSED" if number == 0 else "ACTIVE"}"\nrrule = "{rule}"\nprompt = "Go"\n'
            f'target_thread_id = "t-1"\nmodel = "m"\ncreated_at = {BASE.now}\n'
        )
    entries = read("codex", tmp_path)
    for entry, (rule, expected) in zip(entries, RULES.items(), strict=True):
        said = entry.schedule.get("expression") or entry.schedule.get("every") or entry.schedule.get("at")
        assert said == expected and (entry.refused is None) == (expected is not None), rule
    assert entries[0].is_paused and entries[0].session == "t-1" and not entries[1].is_paused
    assert agree(entries) == 9


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/New_York"])
def test_the_next_hundred_times_of_a_rule_are_those_of_dateutil(tmp_path: Path, zone: str) -> None:
    """In local time, as the rules are: of a repeated hour the first counts. A time that does not exist is left out of
    the comparison: RFC 5545 drops it, and what Codex does is not documented; here it runs when the clock has moved."""
    rules = [rule for rule, expected in RULES.items() if expected is not None and "T" not in expected]
    by_wall_clock = [rule for rule in rules if "INTERVAL" not in rule and "HOURLY" not in rule]
    for number, rule in enumerate(by_wall_clock):
        (tmp_path / f"a{number}").mkdir()
        text = f'kind = "cron"\nstatus = "ACTIVE"\nrrule = "{rule}"\nprompt = "Go"\n'
        (tmp_path / f"a{number}" / "automation.toml").write_text(text)
    for entry, rule in zip(read("codex", tmp_path, zone=zone), by_wall_clock, strict=True):
        for start in STARTS:
            local = datetime.fromtimestamp(start / 1000, ZoneInfo(zone)).replace(tzinfo=None)
            plain = rule.removeprefix("RRULE:") + ("" if "BYMINUTE" in rule else ";BYMINUTE=0") + ";BYSECOND=0"
            walls = list(rrulestr(plain, dtstart=local.replace(microsecond=0)).xafter(local, count=100))
            instants = {round(wall.replace(tzinfo=ZoneInfo(zone)).timestamp() * 1000): wall for wall in walls}
            expected = [at for at, wall in instants.items() if _wall(at, zone) == wall]
            assert entry.times is not None and len(expected) > 90
            ours = [at for at in entry.times(start, 100) if _wall(at, zone) in walls]
            assert ours == expected, (rule, start)


def _wall(at: int, zone: str) -> datetime:
    return datetime.fromtimestamp(at / 1000, ZoneInfo(zone)).replace(tzinfo=None)


def test_caco_folders_as_they_are(tmp_path: Path) -> None:
    """Definition, last run and session."""
    folder = tmp_path / "schedule" / "daily-standup"
    folder.mkdir(parents=True)
    definition = {
        "slug": "daily-standup", "prompt": "Summarise", "enabled": True,
        "schedule": {"type": "cron", "expression": "0 9 * * 1-5"},
        "sessionConfig": {"model": "m", "persistSession": True},
    }  # fmt: skip
    (folder / "definition.json").write_text(json.dumps(definition))
    (folder / "last-run.json").write_text(json.dumps({"lastRun": "2026-01-29T09:00:15.123Z", "sessionId": "abc-123"}))
    (entry,) = read("caco", tmp_path)
    assert entry.action == {"prompt": "Summarise", "sessionConfig": {"model": "m", "persistSession": True}}
    assert entry.session == "abc-123" and entry.last_run is not None and entry.name == "daily-standup"


def test_open_alice(tmp_path: Path) -> None:
    """Jobs become events for the heartbeat, queued deliveries messages; the heartbeat is said, and left alone."""
    (tmp_path / "data" / "cron").mkdir(parents=True)
    (tmp_path / "data" / "config").mkdir()
    (tmp_path / "data" / "delivery-queue").mkdir()
    jobs = [
        {"id": "j1", "name": "Check", "enabled": True, "schedule": {"kind": "every", "every": "2h"}, "payload": "Look",
         "sessionTarget": "main", "state": {"lastRunAtMs": 1794812400000}},
        {"id": "j2", "enabled": False, "schedule": {"kind": "cron", "cron": "0 9 * * *"}, "payload": "Brief"},
        {"id": "j3", "schedule": {"kind": "at", "at": "2027-01-01T00:00:00Z"}, "payload": {"text": "Once"}},
    ]  # fmt: skip
    (tmp_path / "data" / "cron" / "jobs.json").write_text(json.dumps({"jobs": jobs}))
    (tmp_path / "data" / "config" / "scheduler.json").write_text(json.dumps({"heartbeat": {"every": "30m"}}))
    (tmp_path / "data" / "delivery-queue" / "x.json").write_text(json.dumps({"text": "hello"}))
    entries = read("openalice", tmp_path)
    found = by_ref(entries)
    assert found["j1"].action["event"] == {"text": "Look", "contextKey": "cron:j1"}
    assert found["j2"].is_paused and agree(entries) == 3
    assert [entry.ref for entry in entries if entry.is_skipped] == ["heartbeat"]
    assert (found["x"].becomes, found["x"].action) == ("delivery", {"text": "hello", "channel": "last"})


def test_glm_tray_slots_and_their_keys(tmp_path: Path) -> None:
    """They become quota slots; a key is in a private file, never in what is shown."""
    slots = [
        {"slot": 1, "name": "Main", "enabled": True, "api_key": "glm-secret-1", "wake_interval_enabled": True,
         "wake_interval_minutes": 60, "wake_times_enabled": False, "wake_times": ["09:00"],
         "poll_interval_minutes": 30},
        {"slot": 2, "name": "Other", "enabled": False, "api_key": "glm-secret-2", "wake_times": ["09:00", "14:00"],
         "wake_after_reset_minutes": 1, "logging": True},
        {"slot": 3, "api_key": ""},
    ]  # fmt: skip
    (tmp_path / "settings.json").write_text(json.dumps({"slots": slots}))
    main, other, empty = read("glm-tray", tmp_path)
    assert main.becomes == "slot" and main.key == "glm-secret-1"
    assert main.action == {
        "provider": "glm", "interval": "1h", "poll": "30m",
    }  # fmt: skip
    assert other.action["times"] == ["09:00", "14:00"] and other.action["afterReset"] == "1m" and other.is_paused
    assert other.not_carried == ("logging",) and empty.is_skipped
    assert "glm-secret" not in main.source + other.source + json.dumps(main.action)


MANIFEST = """apiVersion: batch/v1
kind: CronJob
metadata: {name: report, namespace: shop}
spec:
  schedule: "30 2 * * *"
  timeZone: Europe/Berlin
  concurrencyPolicy: Forbid
  startingDeadlineSeconds: 200
  jobTemplate: {spec: {template: {spec: {containers: [{name: x, image: busybox}]}}}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: hourly}
spec: {schedule: "@hourly", suspend: true}
---
kind: Service
metadata: {name: not-a-job}
---
kind: CronJob
metadata: {name: "bad; name"}
spec: {schedule: "0 9 * * *"}
"""


def test_kubernetes_cron_jobs(tmp_path: Path) -> None:
    """They stay in the cluster: a schedule here creates a job from them."""
    (tmp_path / "jobs.yaml").write_text(MANIFEST)
    report, hourly, bad = read("kubernetes", tmp_path)
    assert report.action["command"]["argv"][2].startswith("kubectl -n shop create job --from=cronjob/report ")
    assert report.options == {"catchUp": "once", "maxLateness": "3m20s"} and report.not_carried == ()
    assert hourly.is_paused and hourly.not_carried == ("concurrencyPolicy Allow",) and bad.refused
    assert agree([report, hourly]) == 2


def test_kubernetes_follows_the_wall_clock() -> None:
    """A minute runs whenever the clock shows it: never in a gap, and twice if it is repeated."""
    zone = ZoneInfo("Europe/Berlin")
    for start in (STARTS[1], STARTS[4]):
        for expression, hours, minutes in (("30 2 * * *", {2}, {30}), ("0,20 1-3 * * *", {1, 2, 3}, {0, 20})):
            manifest = {
                "kind": "CronJob", "metadata": {"name": "x"}, "spec": {"schedule": expression, "timeZone": str(zone)},
            }  # fmt: skip
            (entry,) = read("kubernetes", content=json.dumps(manifest))
            walls = (
                (at, datetime.fromtimestamp(at / 1000, zone)) for at in range(start + MINUTE, start + 4 * DAY, MINUTE)
            )
            expected = [at for at, wall in walls if wall.hour in hours and wall.minute in minutes]
            assert entry.times is not None and list(entry.times(start, len(expected))) == expected


BOMB = "a: &a [x,x]\nb: &b [*a,*a]\nkind: CronJob\n"


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        ("kubernetes", BOMB, "line 2: it uses aliases"),
        ("kubernetes", "a: [", "not YAML"),
        ("openclaw", "[" * 100_000, "nested too deeply"),
        ("openclaw", '{"jobs":\n [nonsense]}', "line 2"),
        ("openclaw", '{"jobs": [1]}', "not an object"),
        ("openclaw", '{"jobs": ' + json.dumps([{"id": str(n)} for n in range(2_001)]) + "}", "2001 jobs"),
        ("hermes", '{"jobs": 5}', "no list of jobs"),
        ("codex", "a = [\n=", "line 2"),
        ("claude", "{}}", "line 1"),
    ],
)
def test_hostile_files_are_refused_with_their_line(kind: str, text: str, said: str) -> None:
    """As a whole."""
    with pytest.raises(SourceRefused, match=said):
        read(kind, content=text)


def test_files_that_are_no_files(tmp_path: Path) -> None:
    """Links, folders in place of files, other people's databases."""
    (tmp_path / "jobs.json").symlink_to("/etc/passwd")
    with pytest.raises(SourceRefused, match="symbolic link"):
        read("openclaw", tmp_path)
    (tmp_path / "openclaw.sqlite").write_bytes(b"not a database" * 100)
    with pytest.raises(SourceRefused, match="cannot be read"):
        read("openclaw", tmp_path / "openclaw.sqlite")
    with pytest.raises(SourceRefused, match="does not exist"):
        read("hermes", tmp_path / "none")
