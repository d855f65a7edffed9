"""launchd: property lists as Apple's manual and the tools of others write them. The times are those of cron."""

import plistlib
from pathlib import Path
from typing import Any

import pytest

from moving.kit import STARTS, read, year_of
from wakeful.integrations.imports.entries import Entry, SourceRefused
from wakeful.integrations.imports.systemd_calendar import parse_calendar

JOB: dict[str, Any] = {
    "Label": "com.example.backup",
    "ProgramArguments": ["/usr/local/bin/backup", "--all"],
    "EnvironmentVariables": {"LANG": "C", "API_TOKEN": "hunter2"},
    "WorkingDirectory": "/srv",
    "StandardOutPath": "/tmp/backup.log",
    "ProcessType": "Background",
}


def listed(folder: Path, **changes: Any) -> list[Entry]:
    with (folder / "com.example.backup.plist").open("wb") as file:
        plistlib.dump({**JOB, **changes}, file)
    return read("launchd", folder)


@pytest.mark.parametrize(
    ("calendar", "as_systemd"),
    [
        ({"Hour": 7, "Minute": 30}, "*-*-* 07:30"),
        ({"Hour": 9, "Minute": 0, "Weekday": 1}, "Mon *-*-* 09:00"),
        ({"Hour": 9, "Minute": 0, "Weekday": 7}, "Sun *-*-* 09:00"),
        ({"Day": 1, "Hour": 0, "Minute": 0}, "*-*-01 00:00"),
        ({"Month": 12, "Day": 24, "Hour": 18, "Minute": 5}, "*-12-24 18:05"),
        ([{"Hour": 7, "Minute": 0, "Weekday": day} for day in range(1, 6)], "Mon..Fri *-*-* 07:00"),
        ([{"Hour": hour, "Minute": 0} for hour in (6, 12, 18)], "*-*-* 06,12,18:00"),
    ],
)
def test_a_year_of_times(calendar: Any, as_systemd: str, tmp_path: Path) -> None:
    """Several dictionaries that differ in one field are one schedule. The oracle is another reader's."""
    (entry,) = listed(tmp_path, StartCalendarInterval=calendar)
    rules = parse_calendar(as_systemd, "Europe/Berlin").times
    times = year_of(entry)
    assert times == [at for at in rules(STARTS[0], len(times) + 1) if at <= STARTS[0] + 365 * 86_400_000]


def test_the_day_or_the_weekday(tmp_path: Path) -> None:
    """As in cron, either of them."""
    (entry,) = listed(tmp_path, StartCalendarInterval={"Day": 13, "Weekday": 5, "Hour": 6, "Minute": 0})
    assert entry.schedule["expression"] == "0 6 13 * 5" and len(year_of(entry)) > 60
    (entry,) = listed(tmp_path, StartCalendarInterval={"Minute": 15})
    assert entry.schedule["expression"] == "15 * * * *" and len(year_of(entry)) == 365 * 24


def test_what_a_job_becomes(tmp_path: Path) -> None:
    """Its program, its folder, its variables; a secret is not stored; what means something else has a note."""
    (entry,) = listed(tmp_path, StartCalendarInterval={"Hour": 7, "Minute": 30}, RunAtLoad=True, Disabled=True)
    assert entry.action["command"] == {
        "argv": ["/usr/local/bin/backup", "--all"], "cwd": "/srv", "env": {"LANG": "C"}, "passEnv": ["API_TOKEN"],
    }  # fmt: skip
    assert entry.is_paused and entry.options["catchUp"] == "once" and "hunter2" not in repr(entry)
    assert {"ProcessType"} <= set(entry.not_carried)
    assert [note.partition(" ")[0] for note in entry.notes] == ["launchd", "it", "its"]
    (interval,) = listed(tmp_path, StartInterval=5400)
    assert interval.schedule == {"type": "every", "every": "1h30m"} and "sleeping Mac" in interval.notes[0]


def test_several_times_that_one_schedule_cannot_have(tmp_path: Path) -> None:
    """Become several, in one lane."""
    times = [{"Hour": 7, "Minute": 30}, {"Hour": 18, "Minute": 0, "Weekday": 5}]
    first, second = listed(tmp_path, StartCalendarInterval=times)
    assert first.options["lane"] == second.options["lane"] == "launchd-com.example.backup"


def test_what_would_be_lost_is_refused(tmp_path: Path) -> None:
    """Another trigger, another user, a job without times, a field out of range."""
    calendar = {"Hour": 7, "Minute": 30}
    (entry,) = listed(tmp_path, StartCalendarInterval=calendar, WatchPaths=["/srv"])
    assert "also starts by WatchPaths" in str(entry.refused)
    (entry,) = listed(tmp_path, StartCalendarInterval=calendar, UserName="other")
    assert "it runs as other" in str(entry.refused)
    (entry,) = listed(tmp_path, KeepAlive=True)
    assert entry.is_skipped
    (entry,) = listed(tmp_path, StartCalendarInterval={"Hour": 24})
    assert "not between 0 and 23" in str(entry.refused)


@pytest.mark.parametrize("text", ["bplist00\x01", "hello", "<plist><dict><key>a</key>", "<plist><array/></plist>"])
def test_another_file_is_refused(text: str, tmp_path: Path) -> None:
    """Also one that declares entities, which could grow without end."""
    (tmp_path / "x.plist").write_text(text)
    with pytest.raises(SourceRefused):
        read("launchd", tmp_path / "x.plist")
