"""systemd timers: every line is read as systemd reads it. The oracle is `systemd-analyze calendar`."""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from moving.kit import CORPUS, STARTS, ZONES, read
from wakeful.core.errors import Invalid
from wakeful.core.time.timing import next_n, resolve
from wakeful.core.time.timing_json import read_timing
from wakeful.integrations.imports.entries import Entry, EntryRefused, SourceRefused
from wakeful.integrations.imports.fitting import fit
from wakeful.integrations.imports.systemd_calendar import parse_calendar

LINES = [line for line in (CORPUS / "oncalendar.txt").read_text().splitlines() if line]
REFUSED = [line for line in (CORPUS / "oncalendar-refused.txt").read_text().splitlines() if line]
needs_oracle = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")


def oracle(lines: list[str], zone: str, start: int, count: int) -> dict[str, list[int]]:
    """The next times of all lines, by systemd itself."""
    base = datetime.fromtimestamp(start / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    argv = ["systemd-analyze", "calendar", f"--iterations={count}", f"--base-time={base}", *lines]
    environment = {**os.environ, "TZ": zone, "LC_ALL": "C"}
    told = subprocess.run(argv, capture_output=True, text=True, env=environment, timeout=120, check=True)
    found: dict[str, list[int]] = {}
    for line, block in zip(lines, re.split(r"\n\n", told.stdout.strip()), strict=True):
        in_utc = re.findall(r"(?:\(in UTC\)|Next elapse|Iter\. #\d+): \w{3} ([\d-]+ [\d:]+) UTC", block)
        found[line] = [
            round(datetime.strptime(text, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC).timestamp() * 1000)
            for text in in_utc
        ]
    return found


@needs_oracle
def test_the_next_hundred_times_are_systemds_own() -> None:
    """Across a change of the clock; both by its rules and as our schedule. Every fourth line; all of them below."""
    compare(LINES[::4], "Europe/Berlin", STARTS[1:2])


@needs_oracle
@pytest.mark.torture
@pytest.mark.parametrize("zone", [zone for zone in ZONES if zone != "Africa/Cairo"])
def test_the_next_hundred_times_are_systemds_own_everywhere(zone: str) -> None:
    """In more zones, from before and after each change of the clock. Not in Cairo, where midnight is left out: there
    systemd-analyze 252 gives up."""
    compare(LINES, zone, STARTS)


def compare(lines: list[str], zone: str, starts: Sequence[int]) -> None:
    assert len(LINES) >= 40
    for start in starts:
        expected = oracle(lines, zone, start, 100)
        for line in lines:
            calendar, count = parse_calendar(line, zone), len(expected[line])
            # systemd's calendar ends with the year 2199, before the hundredth leap day.
            assert count == 100 or (calendar.years is not None and count <= 1) or line.startswith("*-02-29")
            assert calendar.times(start, count + (calendar.years is not None)) == expected[line], line
            schedule, problem = fit(calendar.schedule(), calendar.times, now=start)
            assert problem is None, line
            timing = resolve(read_timing(schedule), now=start, default_zone="UTC")
            assert list(next_n(timing, start, count)) == expected[line], (line, schedule)


@needs_oracle
@pytest.mark.parametrize(
    ("lines", "count"),
    [
        (["Mon 9:00", "Wed,Fri 9:00"], 1),
        (["*:00", "*:30"], 1),
        (["9:00", "17:30", "23:05"], 1),
        (["*-01-01 6:00", "*-07-01 6:00"], 1),
        (["*-*-01 6:00", "*-*-15 6:00", "*-*-01 18:00", "*-*-15 18:00"], 1),
        (["Mon..Fri 9:00", "Sat 11:00"], 2),
    ],
)
def test_the_lines_of_a_timer_are_one_schedule_if_one_has_their_times(
    lines: list[str], count: int, tmp_path: Path
) -> None:
    """Every time of each line, once; across both changes of the clock."""
    text = "".join(f"OnCalendar={line}\n" for line in lines)
    write(tmp_path, a__timer=f"[Timer]\n{text}", a__service="[Service]\nExecStart=/bin/true\n")
    entries = read("systemd", tmp_path)
    assert len(entries) == count and len({entry.options.get("lane") for entry in entries}) == 1
    for start in (STARTS[1], STARTS[4]):  # a day before the clock goes back, and forward
        told = oracle(lines, "Europe/Berlin", start, 100)
        theirs = sorted({at for times in told.values() for at in times})[:100]
        assert theirs == sorted(at for entry in entries for at in next_times(entry, start))[:100]


@pytest.mark.parametrize(
    ("settings", "stagger", "is_noted"),
    [
        ("RandomizedDelaySec=10min\n", "10m", True),
        ("RandomizedDelaySec=10min\nFixedRandomDelay=true\n", "10m", False),
        ("AccuracySec=1h\n", "1h", False),
        ("RandomizedDelaySec=10min\nAccuracySec=1h\n", "1h10m", True),
        ("AccuracySec=1us\n", None, False),
        ("RandomizedDelaySec=0\n", None, False),
    ],
)
def test_how_late_a_timer_may_be(settings: str, stagger: str | None, is_noted: bool, tmp_path: Path) -> None:
    """AccuracySec and a fixed delay are the same part of the window each time, as stagger is; a random one is not."""
    write(tmp_path, a__timer=f"[Timer]\nOnCalendar=daily\n{settings}", a__service="[Service]\nExecStart=/bin/true\n")
    (entry,) = read("systemd", tmp_path)
    assert entry.options.get("stagger") == stagger and bool(entry.notes) == is_noted and entry.not_carried == ()


def test_a_missing_program_does_not_hide_the_times(tmp_path: Path) -> None:
    """Nor does a missing service: the entry is refused, and its times can be compared."""
    write(tmp_path, a__timer="[Timer]\nOnCalendar=Mon 9:00\n")
    (entry,) = read("systemd", tmp_path)
    assert "a.service is not next to it" in str(entry.refused)
    assert entry.schedule["expression"] == "0 9 * * 1" and entry.times is not None


def next_times(entry: Entry, start: int) -> Sequence[int]:
    assert entry.times is not None
    schedule, problem = fit(entry.schedule, entry.times, now=start)
    assert problem is None, problem
    return next_n(resolve(read_timing(schedule), now=start, default_zone="UTC"), start, 100)


def test_a_single_time_that_does_not_exist_differs() -> None:
    """systemd never runs it; we would, right after the gap. So it is refused, with the time."""
    calendar = parse_calendar("2027-03-28 02:15", "Europe/Berlin")
    _, problem = fit(calendar.schedule(), calendar.times, now=STARTS[0])
    assert problem is not None and "the source has 0 times" in problem


@pytest.mark.parametrize("line", REFUSED)
def test_what_cron_cannot_say_is_refused(line: str) -> None:
    """With the expression and the reason."""
    with pytest.raises((EntryRefused, Invalid)):
        parse_calendar(line, "UTC").schedule()


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return folder


SERVICE = """[Service]
Type=oneshot
User=me
WorkingDirectory=~
Environment=LANG=C "GREETING=hello world" DB_PASSWORD=hunter2
EnvironmentFile=/etc/default/backup
ExecStartPre=/bin/mkdir -p %h/backup
ExecStart=/usr/bin/backup --to ${GREETING} \\
    --full
TimeoutStartSec=1h 30min
"""


def test_a_timer_with_its_service(tmp_path: Path) -> None:
    """Persistent, RandomizedDelaySec, several lines, the command and its surroundings."""
    timer = "[Timer]\nOnCalendar=Mon..Fri 9:00\nOnCalendar=Sat 11:00\nOnCalendar=Mon 9:00\nPersistent=true\n"
    write(tmp_path, backup__timer=timer + "RandomizedDelaySec=90\nAccuracySec=1us\n", backup__service=SERVICE)
    weekdays, saturday = read("systemd", tmp_path)
    assert weekdays.schedule["expression"] == "0 9 * * 1,2,3,4,5" and saturday.schedule["expression"] == "0 11 * * 6"
    assert weekdays.options == {
        "catchUp": "once", "maxConsecutiveErrors": 0, "stagger": "1m30s", "timeout": "1h30m", "lane": "systemd-backup",
    }  # fmt: skip
    command = weekdays.action["command"]
    assert command["argv"] == [
        "sh", "-c", "/bin/mkdir -p /home/me/backup && /usr/bin/backup --to 'hello world' --full",
    ]  # fmt: skip
    assert command["env"] == {"LANG": "C", "GREETING": "hello world"} and command["passEnv"] == ["DB_PASSWORD"]
    assert command["cwd"] == "/home/me"
    assert "EnvironmentFile" in weekdays.not_carried and "at random" in weekdays.notes[0]
    (adopted, _) = read("systemd", tmp_path, is_adopting=True)
    assert adopted.action["command"]["argv"] == ["systemctl", "--user", "start", "backup.service"]


def test_a_disabled_timer_is_paused(tmp_path: Path) -> None:
    """In the folders that systemd reads, a timer that is not enabled does not run; elsewhere that is not known."""
    timer = "[Timer]\nOnCalendar=daily\n[Install]\nWantedBy=timers.target\n"
    files = {"a__timer": timer, "a__service": "[Service]\nExecStart=/bin/true\n"}
    folder = tmp_path / ".config" / "systemd" / "user"
    (folder / "timers.target.wants").mkdir(parents=True)
    write(folder, **files)
    (disabled,) = read("systemd", folder)
    (folder / "timers.target.wants" / "a.timer").symlink_to(folder / "a.timer")
    (enabled,) = read("systemd", folder)
    write(tmp_path, **files)
    (elsewhere,) = read("systemd", tmp_path)
    assert [entry.is_paused for entry in (disabled, enabled, elsewhere)] == [True, False, False]


def test_intervals_and_what_has_no_time(tmp_path: Path) -> None:
    """OnUnitActiveSec counts from the last start; the start of the machine is no time."""
    service = "[Service]\nExecStart=/bin/true\n"
    write(tmp_path, a__timer="[Timer]\nOnBootSec=5min\nOnUnitActiveSec=1h\n", a__service=service)
    write(tmp_path, b__timer="[Timer]\nOnBootSec=5min\n", b__service=service)
    write(tmp_path, c__timer="[Timer]\nOnCalendar=daily\n")
    write(
        tmp_path, d__timer="[Timer]\nOnCalendar=9:00\nOnCalendar=9,10:00\nOnCalendar=Mon 10,11:00\n", d__service=service
    )
    write(tmp_path, e__timer="[Timer]\nOnCalendar=daily\n", e__service="[Service]\nExecStart=/bin/true %i\n")
    found = {Path(entry.place).stem: entry for entry in read("systemd", tmp_path)}
    assert found["a"].schedule["every"] == "1h" and "OnBootSec" in found["a"].not_carried
    assert "anchor" not in found["a"].schedule  # its stamp says when it last ran; this one has none
    for name, said in {"b": "start of the machine", "c": "not next to it", "d": "in common", "e": "%i"}.items():
        assert said in str(found[name].refused), name


@pytest.mark.parametrize(
    ("text", "said"), [("[Timer]\nnonsense\n", "line 2"), ("[Timer]\nA=" + "x" * 70_000, "line 2")]
)
def test_hostile_units_are_refused_with_their_line(tmp_path: Path, text: str, said: str) -> None:
    """As a whole."""
    write(tmp_path, x__timer=text)
    with pytest.raises(SourceRefused, match=said):
        read("systemd", tmp_path)
