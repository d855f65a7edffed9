"""Moving out: the files are accepted by cron and systemd, have the same times, and run the same command. What is lost
is said."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from edges.cli.kit import Cli, daemon
from moving.kit import STARTS, read, year_of
from moving.stand_ins import Machine
from moving.test_systemd import needs_oracle, oracle
from wakeful.core.time.instants import DAY
from wakeful.core.time.timing import next_after, resolve
from wakeful.core.time.timing_json import read_timing
from wakeful.features.moving.outward import Format, moved_out

ZONE = "Europe/Berlin"


def definition(schedule: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"schedule": schedule, "command": {"argv": ["/usr/bin/report", "--all"]}, **more}


def cron(expression: str, zone: str = ZONE) -> dict[str, Any]:
    return {"type": "cron", "expression": expression, "timezone": zone}


def out(form: Format, written: dict[str, Any], slug: str = "job") -> Any:
    return moved_out({f"schedules/{slug}.json": json.dumps(written)}, form, zone=ZONE, now=STARTS[0])


def ours(schedule: dict[str, Any]) -> list[int]:
    timing, at, found = resolve(read_timing(schedule), now=STARTS[0], default_zone=ZONE), STARTS[0], []
    while (following := next_after(timing, at)) is not None and following <= STARTS[0] + 365 * DAY:
        found.append(at := following)
    return found


SCHEDULES: dict[str, dict[str, Any]] = {
    "daily": cron("30 4 * * *"),
    "weekdays": cron("*/15 9-17 * * 1-5"),
    "either day": cron("0 6 13 * 5"),
    "both days": cron("0 6 */31,2,3,4,5,6,7 * 1"),
    "months": cron("0 0 1 */3 *"),
    "named": cron("@weekly"),
    "times": {"type": "times", "times": ["06:15", "12:45", "18:15"], "timezone": ZONE},
    "half hours": {"type": "every", "every": "30m", "anchor": "2026-01-01T00:05:00Z"},
}
ONLY_SYSTEMD: dict[str, dict[str, Any]] = {
    "last day": cron("0 9 L * *"),
    "second Friday": cron("0 9 * * 5#2"),
    "last Sunday": cron("0 9 * * 0L"),
    "seconds": cron("10,40 0 7 * * *"),
    "another zone": cron("0 7 * * *", "America/New_York"),
    "six hours": {"type": "every", "every": "6h", "anchor": "2026-01-01T01:30:00Z"},
    "once": {"type": "once", "at": "2027-03-28T12:00:00Z"},
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_crontab_has_the_same_times(name: str, tmp_path: Path) -> None:
    """Over a year with both clock changes, read back by our own reader; and cron itself accepts it."""
    moved = out("crontab", definition(SCHEDULES[name]))
    (schedule,) = moved.lost
    assert schedule.refused is None and not any("differ" in text for text in schedule.lost)
    file = tmp_path / "crontab"
    file.write_text(moved.files["crontab"])
    read_back = read("crontab", file)
    assert sorted(at for entry in read_back for at in year_of(entry)) == ours(SCHEDULES[name])
    if shutil.which("crontab"):
        said = subprocess.run(["crontab", "-n", str(file)], capture_output=True, text=True, check=False)
        assert said.returncode == 0, said.stderr


@needs_oracle
@pytest.mark.parametrize("name", SCHEDULES | ONLY_SYSTEMD)
def test_a_timer_has_the_same_times(name: str, tmp_path: Path) -> None:
    """By systemd itself, which finds nothing wrong with the units."""
    schedule = (SCHEDULES | ONLY_SYSTEMD)[name]
    moved = out("systemd", definition(schedule))
    for path, text in moved.files.items():
        (tmp_path / path).write_text(text.replace("/usr/bin/report", "/bin/true"))
    lines = [line.removeprefix("OnCalendar=") for line in moved.files["job.timer"].splitlines() if "OnCalendar" in line]
    year, different = ours(schedule), set[int]()
    for start in (STARTS[0], STARTS[4]):  # over the change of the clock in spring; that of autumn is in the crontab's
        told = oracle(lines, ZONE, start, 100)
        theirs = sorted({at for times in told.values() for at in times})[:100]
        theirs = [at for at in theirs if at <= STARTS[0] + 365 * DAY]
        different |= set(theirs) ^ set([at for at in year if at > start][: len(theirs)])
    assert not different
    argv = ["systemd-analyze", "verify", str(tmp_path / "job.timer")]
    said = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert "job." not in said.stderr, said.stderr


@pytest.mark.parametrize(
    ("form", "written", "said"),
    [
        ("crontab", definition(cron("0 9 L * *")), "'l'"),
        ("crontab", definition(cron("10 0 7 * * *")), "it has seconds"),
        ("crontab", definition(cron("0 7 * * *", "America/New_York")), "its zone is America/New_York"),
        ("crontab", definition({"type": "every", "every": "7m"}), "does not divide"),
        ("crontab", definition({"type": "every", "every": "6h"}), "counts real hours"),
        ("crontab", definition({"type": "once", "at": "2027-03-28T12:00:00Z"}), "no times that repeat"),
        ("crontab", {"schedule": cron("0 7 * * *"), "prompt": "Hi"}, "it runs no command"),
        ("crontab", definition(cron("0 7 * * *"), command={"argv": ["a", "b\nc"]}), "several lines"),
        ("systemd", definition({"type": "manual"}), "its times are not known"),
        ("systemd", definition(cron("0 7 LW * *")), "last working day"),
        ("systemd", definition(cron("0 7 * * *"), command={"argv": ["./x"]}), "in the folder of the daemon"),
    ],
)
def test_what_cannot_be_expressed_is_left_out(form: Format, written: dict[str, Any], said: str) -> None:
    """With the reason; and nothing is written for it."""
    moved = out(form, written)
    assert said in str(moved.lost[0].refused).lower() or said in str(moved.lost[0].refused)
    assert moved.files == {}


def test_what_is_lost_is_said() -> None:
    """Fields that have no place there, and times that differ when the clock changes."""
    more = {"retry": {"times": 3}, "timeout": "20m", "deliver": {"channel": "last"}, "catchUp": "once", "stagger": "5m"}
    lost = out("crontab", definition(cron("30 4 * * *"), **more)).lost[0].lost
    assert {"retry", "timeout", "deliver", "catchUp", "stagger"} <= set(lost)
    moved = out("systemd", definition(cron("30 2 * * *"), **more))
    assert {"retry", "deliver"} <= set(moved.lost[0].lost) and "timeout" not in moved.lost[0].lost
    assert any("differ" in text and "in systemd" in text for text in moved.lost[0].lost)  # it skips the missing time
    assert "RandomizedDelaySec=300s\nFixedRandomDelay=true" in moved.files["job.timer"]
    assert "Persistent=true" in moved.files["job.timer"] and "TimeoutStartSec=1200s" in moved.files["job.service"]
    interval = out("systemd", definition({"type": "every", "every": "7m"}))
    assert "OnUnitActiveSec=420s" in interval.files["job.timer"] and any(
        "grid" in text for text in interval.lost[0].lost
    )
    assert moved_out({"workflows/w.json": "{}"}, "crontab", zone=ZONE, now=0).lost[0].refused is not None
    off = out("crontab", definition(cron("30 4 * * *"), enabled=False)).files["crontab"]
    assert off.splitlines()[1].startswith("# 30 4")
    assert "[Install]" not in out("systemd", definition(cron("30 4 * * *"), enabled=False)).files["job.timer"]


HARD = ["report", "100%", "it's", 'a "b"', "$HOME", "back\\slash", "two  words", ""]


def test_commands_move_out_and_back(tmp_path: Path) -> None:
    """Over a running daemon: exported in both forms, imported again, and run: the program is given the same."""
    machine = Machine(tmp_path).install("report")
    home = tmp_path / "home"
    work = tmp_path / "some folder"
    work.mkdir()
    command = {
        "argv": [str(machine.bin / "report"), *HARD[1:]], "cwd": str(work), "env": {"A": "x 'y' 100%"},
        "stdin": "one\n50% two\n",
    }  # fmt: skip
    request = {"schedule": {"type": "every", "every": "2h"}, "http": {"url": "http://127.0.0.1:9/"}}
    with daemon(home, environ={**machine.environ, "TZ": "Europe/Berlin"}) as cli:
        assert (
            cli.ask(
                "add", "daily", "--from", "-", feed=json.dumps(definition(cron("30 4 * * *"), command=command))
            ).code
            == 0
        )
        assert cli.ask("add", "chat", "--from", "-", feed=json.dumps(request)).code == 0
        expected = run_of(cli, machine, "daily")
        forms = {"crontab": "crontab", "systemd": ""}  # and the file to import
        for form in forms:
            said = cli.ask("export", str(tmp_path / form), "--as", form)
            assert said.code == 0 and "chat: left out: it runs no command" in said.out and "1 schedules" in said.out
        for form, name in forms.items():
            made = cli.ask("-o", "json", "import", form, str(tmp_path / form / name), "--apply").json["entries"]
            (entry,) = [one for one in made if one["action"] == "create"]
            assert run_of(cli, machine, entry["slug"]) == expected, form
        assert machine.heard("report")[1]["stdin"] == machine.heard("report")[0]["stdin"] == "one\n50% two\n"
        answer = cli.ask("-o", "json", "export", str(tmp_path / "again"), "--as", "crontab").json
    offline = Cli(home).ask("-o", "json", "export", str(tmp_path / "offline"), "--as", "crontab", TZ="Europe/Berlin")
    assert offline.json["lost"] == answer["lost"]
    assert (tmp_path / "offline" / "crontab").read_text() == (tmp_path / "again" / "crontab").read_text()
    said = Cli(home).ask("export", str(tmp_path / "x"), "--as", "crontab", "--prune")
    assert said.code == 2


def run_of(cli: Cli, machine: Machine, slug: str) -> dict[str, Any]:
    done = cli.ask("run", slug, "--wait")
    assert done.code == 0, done.out + done.err
    heard = machine.heard("report")[-1]
    return {"argv": heard["argv"], "cwd": heard["cwd"], "A": heard["env"].get("A")}
