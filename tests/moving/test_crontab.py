"""crontab: every line is read as cron reads it, and its times are cron's own."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim

from moving.kit import CORPUS, STARTS, ZONES, read
from wakeful.core.time.timing import next_n, resolve
from wakeful.core.time.timing_json import read_timing
from wakeful.integrations.imports.entries import Entry, SourceRefused
from wakeful.integrations.imports.fitting import fit

FILE = CORPUS / "crontab.txt"
MAIL = frozenset({"mail"})


def by_name(entries: list[Entry]) -> dict[str, Entry]:
    return {entry.name: entry for entry in entries}


def oracle(expression: str, zone: str, start: int, count: int) -> list[int]:
    """cronsim follows Debian's cron; it has no fix for a start inside the repeated hour, so none begins there."""
    walk = CronSim(expression, datetime.fromtimestamp(start / 1000, UTC).astimezone(ZoneInfo(zone)))
    return [round(next(walk).timestamp() * 1000) for _ in range(count)]


def test_the_next_hundred_times_are_crons_own() -> None:
    """By cronsim under Debian's rules, across changes of the clock."""
    compare("Europe/Berlin", (STARTS[4],))


@pytest.mark.torture
@pytest.mark.parametrize("zone", ZONES)
def test_the_next_hundred_times_are_crons_own_everywhere(zone: str) -> None:
    """In more zones, from before and after each change of the clock."""
    compare(zone, STARTS)


def compare(zone: str, starts: Sequence[int]) -> None:
    entries = [entry for entry in read("crontab", FILE, zone=zone, channels=MAIL) if entry.refused is None]
    assert len(entries) >= 40
    for entry in entries:
        assert entry.times is not None
        schedule, problem = fit(entry.schedule, entry.times, now=STARTS[0])
        assert problem is None, entry.source
        timing = resolve(read_timing(schedule), now=STARTS[0], default_zone="UTC")
        for start in starts:
            if zone == "Australia/Lord_Howe" and "*" in "".join(entry.schedule["expression"].split()[:2]):
                # cronsim loses rhythms for half an hour after this clock went back by half an hour.
                assert list(next_n(timing, start, 100)) == entry.times(start, 100), entry.source
                continue
            expected = oracle(entry.schedule["expression"], zone, start, 100)
            assert list(next_n(timing, start, 100)) == expected, (entry.source, schedule)
            assert entry.times(start, 100) == expected, entry.source


def test_broken_lines_are_refused_alone_with_their_line() -> None:
    """The others are taken over."""
    refused = {entry.line: entry for entry in read("crontab", FILE, channels=MAIL) if entry.refused is not None}
    texts = FILE.read_text().splitlines()
    assert [texts[line - 1].split("\t")[0] for line in refused if line] == [
        "@reboot",
        "61 * * * *",
        "* * * *",
        "5/15 * * * *",
        "0 0 * * fri-mon",
        "@fortnightly",
        "this is not a line",
    ]
    assert all(entry.refused for entry in refused.values())
    assert "@reboot has no time" in str(next(iter(refused.values())).refused)


def test_the_command_is_what_cron_runs() -> None:
    """Under its SHELL -c, in the user's home, with the variables above it; % is a newline, and what follows the first
    is standard input."""
    found = by_name(read("crontab", FILE, channels=MAIL))
    mail = found["mail"].action["command"]
    assert mail["argv"] == ["/bin/bash", "-c", 'mail -s "hello" ops@example.org']
    assert mail["stdin"] == "Dear all,\nit is 8 o'clock.\n100% sure\n"
    assert mail["cwd"] == "/home/me"
    assert mail["env"]["BACKUP_DIR"] == "/srv/backup" and "SHELL" not in mail["env"]
    assert found["date"].action["command"]["argv"][2] == "date +%Y-%m-%d >> /var/log/dates"
    assert "stdin" not in found["date"].action["command"]
    assert found["heartbeat"].not_carried[0].startswith("API_TOKEN") and found["heartbeat"].action["command"]["passEnv"]


def test_secrets_are_not_in_what_is_shown() -> None:
    """Neither in variables nor in command lines."""
    shown = "\n".join(entry.source for entry in read("crontab", FILE))
    for secret in ("do-not-print-me", "abcdef0123456789", "hunter2", "topsecret"):
        assert secret not in shown
    assert "Bearer ***" in shown


def test_variables_hold_from_their_line_downwards() -> None:
    """And CRON_TZ counts in cronie, not in Debian's cron."""
    text = "A=1\n0 1 * * * one\nA=2\nCRON_TZ=Asia/Tokyo\n0 2 * * * two\n"
    one, two = read("crontab", content=text)
    assert (one.action["command"]["env"]["A"], two.action["command"]["env"]["A"]) == ("1", "2")
    assert (one.schedule["timezone"], two.schedule["timezone"]) == ("Europe/Berlin", "Asia/Tokyo")
    _, debian = read("crontab", content=text, is_debian_cron=True)
    assert debian.schedule["timezone"] == "Europe/Berlin" and debian.not_carried[0].startswith("CRON_TZ")


def test_system_tables_have_a_user(tmp_path: Path) -> None:
    """Another user's line needs root."""
    folder = tmp_path / "cron.d"
    folder.mkdir()
    (folder / "mine").write_text("0 1 * * * me /bin/one\n0 2 * * * www-data /bin/two -x\n")
    (folder / "not.read").write_text("0 1 * * * me /bin/one\n")
    one, two = read("crontab", folder)
    assert one.action["command"]["argv"] == ["sh", "-c", "/bin/one"]
    assert two.refused is not None and "www-data" in two.refused
    _, two = read("crontab", folder, user="root")
    assert two.action["command"]["argv"] == ["runuser", "-u", "www-data", "--", "sh", "-c", "/bin/two -x"]


def test_one_unreadable_table_of_the_machine_does_not_hide_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without PATH the system's own places are read: `crontab -l` first. What cannot be read is reported."""
    program = tmp_path / "bin" / "crontab"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho '0 1 * * * echo mine'\n")
    program.chmod(0o755)
    (tmp_path / "link").symlink_to("/etc/passwd")
    monkeypatch.setattr("wakeful.integrations.imports.catalogue.existing", lambda *_: [tmp_path / "link"])
    monkeypatch.setattr("wakeful.integrations.imports.catalogue._cron_d", lambda _: [])
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    own, link = read("crontab", environ=dict(os.environ))
    assert (own.place, own.refused) == ("crontab -l", None) and "symbolic link" in str(link.refused)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0 1 * * * ok\n" + "x" * 10_000_000, "larger than"),
        ("0 1 * * * ok\n" + "x" * 100_000, "line 2"),
        ("0 1 * * * ok\n\0\n", "NUL"),
        ("* * * * * x\n" * 3_000, "line 2001: there are more than 2000 entries"),
    ],
)
def test_hostile_tables_are_refused_as_a_whole(tmp_path: Path, text: str, said: str) -> None:
    """With their line."""
    (tmp_path / "table").write_text(text)
    with pytest.raises(SourceRefused, match=said):
        read("crontab", tmp_path / "table")
    (tmp_path / "link").symlink_to("/etc/passwd")
    with pytest.raises(SourceRefused, match="symbolic link"):
        read("crontab", tmp_path / "link")


def test_a_line_that_changes_its_folder_first_is_named_after_its_program(tmp_path: Path) -> None:
    table = tmp_path / "crontab"
    table.write_text(
        "0 1 * * * cd /tmp && ./backup.sh\n0 2 * * * cd '/srv/my site' ; cd app && ./deploy\n0 3 * * * cd /srv/lonely\n"
    )
    assert [entry.name for entry in read("crontab", table, channels=MAIL)] == ["backup", "deploy", "lonely"]
