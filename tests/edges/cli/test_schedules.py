"""Schedules from the command line, over a daemon that runs."""

import json
import re
import shlex
import sys
from pathlib import Path

import pytest
from rich.cells import cell_len

from edges.cli.kit import Cli

ROW = re.compile(r"\w{3} \d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)? CES?T  (?:now|in [\dhdmins ]+)")
LONG = "a" + "-very" * 12


def fits(text: str) -> bool:
    return all(cell_len(line) <= 80 for line in text.splitlines())


def test_add_shows_the_next_five_times(cli: Cli) -> None:
    """In the user's zone, how far away, and on the schedule's own clock where that differs."""
    said = cli.run("add", "stand-up", "--cron", "0 9 * * 1-5", "--tz", "Asia/Shanghai", "--command", "true")
    assert (said.code, said.err) == (0, "")
    first, heading, *rows = said.out.splitlines()
    assert first == "stand-up added: every weekday at 09:00 (Asia/Shanghai)"
    assert heading.split() == ["TIME", "LEFT", "IN", "Asia/Shanghai"]
    assert len(rows) == 5
    assert all(ROW.match(row) and row.endswith("09:00 CST") for row in rows)
    assert fits(said.out)


def test_moments_in_the_words_are_on_the_users_clock_too(cli: Cli) -> None:
    """The grid of an interval, and the time of what happens once."""
    said = cli.ask("add", "gridded", "--every", "90m", "--anchor", "2026-01-01T00:00:00Z", "--command", "true")
    assert said.out.startswith("gridded added: every 90 minutes, aligned to Thu 2026-01-01 01:00 CET\n")
    assert "aligned to Thu 2026-01-01 01:00 CET" in cli.ask("show", "gridded").out
    said = cli.ask("add", "single", "--at", "2099-06-01T09:00:30Z", "--command", "true")
    assert said.out.startswith("single added: once, at Mon 2099-06-01 11:00:30 CEST\n")


def test_add_for_a_program(cli: Cli) -> None:
    """The definition as it reads back, with its next five times, and nothing else on stdout."""
    said = cli.ask("-o", "json", "add", "hourly", "--every", "1h", "--command", "echo hello")
    assert (said.code, said.err) == (0, "")
    assert said.json["slug"] == "hourly"
    assert said.json["command"] == {"argv": ["echo", "hello"]}
    assert len(said.json["next"]) == 5


@pytest.mark.parametrize(
    ("slug", "timing", "count"),
    [
        ("t-cron", ("--cron", "*/30 8-18 * * *"), 5),
        ("t-every", ("--every", "90m", "--anchor", "2026-01-01T00:00:00Z"), 5),
        ("t-at", ("--at", "2099-06-01T09:00", "--tz", "Europe/Berlin"), 1),
        ("t-in", ("--in", "2h"), 1),
        ("t-times", ("--times", "09:00,18:00"), 5),
        ("t-manual", ("--manual",), 0),
    ],
)
def test_every_way_to_say_when(cli: Cli, slug: str, timing: tuple[str, ...], count: int) -> None:
    """The daemon takes each of them; what has no time to come says so."""
    said = cli.ask("add", slug, *timing, "--command", "true")
    assert said.code == 0, said.err
    assert len(ROW.findall(said.out)) == count
    if not count:
        assert "It runs only on request: wakeful run t-manual" in said.out


@pytest.mark.parametrize(
    ("slug", "action"), [("a-url", ("--url", "http://127.0.0.1:9/")), ("a-call", ("--call", "os:getpid"))]
)
def test_other_ways_to_say_what(cli: Cli, slug: str, action: tuple[str, ...]) -> None:
    """Requests and functions are taken like commands."""
    assert cli.ask("add", slug, "--manual", *action).code == 0


def test_add_twice_updates(cli: Cli) -> None:
    """Adding again is harmless; --new refuses it."""
    line = ("add", "twice", "--every", "1h", "--command", "true")
    assert "twice added" in cli.ask(*line).out
    assert "twice updated" in cli.ask(*line).out
    said = cli.ask(*line, "--new")
    assert said.code == 1
    assert "schedule twice already exists" in said.err


def test_a_dry_run_changes_nothing(cli: Cli) -> None:
    """It is checked, its times are shown, and it is not there."""
    said = cli.ask("add", "dry", "--every", "1h", "--command", "true", "--dry-run")
    assert said.code == 0
    assert "nothing was written" in said.out
    assert len(ROW.findall(said.out)) == 5
    assert cli.ask("show", "dry").code == 1


def test_a_disabled_one_says_how_it_begins(cli: Cli) -> None:
    """Its five times are shown, but not as if something would come of them."""
    said = cli.ask("add", "off", "--every", "1h", "--command", "true", "--disabled")
    assert "It is disabled; enable it with: wakeful resume off\nIts times would be:\n" in said.out
    assert len(ROW.findall(said.out)) == 5


def test_what_the_daemon_refuses_is_told_in_options(cli: Cli) -> None:
    """Every fault on its own line, with the option that was typed and the cure; exit code 2."""
    said = cli.ask("add", "x", "--cron", "99 * * * *", "--tz", "Europe/Berln", "--url", "nowhere")
    assert (said.code, said.out) == (2, "")
    assert said.err.splitlines() == [
        "wakeful: 3 errors:",
        "  --cron: minute '99' is not valid in '99 * * * *'; write 0-59",
        "  --tz: 'Europe/Berln' is not an IANA zone; did you mean 'Europe/Berlin'?",
        "  --url: 'nowhere' is not an http or https address; write for example http://127.0.0.1:9000/in",
    ]


def test_a_prompt_too_often_names_the_option_and_the_setting(cli: Cli) -> None:
    """The daemon's own words name neither."""
    said = cli.ask("add", "often", "--every", "5m", "--prompt", "Anything new?")
    assert said.code == 2
    told = " ".join(said.err.split())
    assert "--every: Minimum interval is 60 minutes (1 hour) for an agent" in told
    assert told.endswith("lower limits.agent_interval_min in wakeful.toml")


@pytest.mark.parametrize("slug", ["Not A Slug", "heartbeat", "a/../b", "ü", "%2e%2e"])
def test_a_bad_slug_is_refused(cli: Cli, slug: str) -> None:
    """Whatever is typed as a slug stays one part of the path."""
    said = cli.ask("add", slug, "--manual", "--command", "true")
    assert said.code == 2
    assert "slug: " in said.err


def test_what_its_writer_should_know_is_said(cli: Cli) -> None:
    """A distance that is too short is raised, and that is told beside the answer."""
    said = cli.ask("-o", "json", "add", "often", "--every", "1s", "--command", "true", "--disabled")
    assert said.json["schedule"]["every"] == "10s"
    assert "1s is below the minimum; 10s is used" in said.err


def test_ls_fits_the_terminal(cli: Cli) -> None:
    """80 columns, one line for each schedule, the next to fire first; piped in full."""
    cli.ask("add", LONG, "--every", "1d", "--command", "true")
    said = cli.run("ls")
    assert (said.code, said.err) == (0, "")
    assert fits(said.out)
    assert said.out.splitlines()[0].split()[:4] == ["SLUG", "HEALTH", "NEXT", "LEFT"]
    assert "…" in said.out
    assert LONG in cli.ask("ls", COLUMNS="").out
    shown = cli.on_terminal("ls")
    plain = re.sub(r"\x1b\[[\d;]*m", "", shown)
    assert fits(plain)
    assert len(plain.splitlines()) == len(said.out.splitlines())
    assert "\x1b[" in shown  # colours on a terminal, and nowhere else
    assert "\x1b" not in said.out


def test_ls_for_a_program(cli: Cli) -> None:
    """All schedules as the API has them."""
    said = cli.ask("ls", "-o", "json")
    assert said.json["next"] is None
    assert "slug" in said.json["schedules"][0]


def test_ls_of_some(cli: Cli) -> None:
    """By how they stand, and by a text."""
    cli.ask("add", "needle", "--manual", "--command", "true", "--disabled")
    assert [one["slug"] for one in cli.ask("ls", "--like", "needle", "-o", "json").json["schedules"]] == ["needle"]
    found = cli.ask("ls", "--status", "disabled", "-o", "json").json["schedules"]
    assert "needle" in [one["slug"] for one in found]
    assert {one["status"] for one in found} == {"disabled"}
    assert "no matching schedules" in cli.ask("ls", "--like", "nobody-has-this").err
    first = cli.ask("ls", "--limit", "1", "-o", "json").json
    assert first["next"] == first["schedules"][-1]["slug"]
    assert "only the first 1 by name" in cli.ask("ls", "--limit", "1").err


def test_show_tells_all(cli: Cli) -> None:
    """When, what, next on both clocks."""
    cli.ask("add", "shown", "--cron", "0 9 * * *", "--tz", "Asia/Tokyo", "--command", "echo 'a b'")
    said = cli.run("show", "shown")
    assert (said.code, said.err) == (0, "")
    assert fits(said.out)
    text = " ".join(said.out.split())
    assert "when: every day at 09:00 (Asia/Tokyo)" in text
    assert "command: echo 'a b'" in text
    assert "09:00 JST in Asia/Tokyo" in text


def test_show_gives_what_add_takes(cli: Cli) -> None:
    """A definition goes out as JSON and comes in again, under another name."""
    cli.ask("add", "one", "--every", "3h", "--command", "true", "--set", "overlap=queue")
    shown = cli.ask("show", "one", "-o", "json")
    said = cli.ask("add", "two", "--from", "-", "-o", "json", "--catch-up", "skip", feed=shown.out)
    assert said.code == 0, said.err
    assert said.json["schedule"] == shown.json["schedule"]
    assert (said.json["overlap"], said.json["catchUp"]) == ("queue", "skip")


def test_what_is_not_there_is_a_failure(cli: Cli) -> None:
    """Exit code 1, and the name that was asked for."""
    for line in (("show",), ("rm",), ("edit",), ("pause",), ("resume",), ("run",), ("stats",), ("runs",), ("next",)):
        said = cli.ask(*line, "nobody", *(("--every", "2h") if line == ("edit",) else ()))
        assert (said.code, said.out) == (1, "")
        assert "there is no schedule 'nobody'" in said.err


def test_edit_by_options(cli: Cli) -> None:
    """Only what was given changes; the new times are shown."""
    cli.ask("add", "edited", "--cron", "0 9 * * *", "--tz", "Asia/Tokyo", "--command", "true", "--timeout", "5m")
    said = cli.run("edit", "edited", "--tz", "Europe/Berlin", "--set", "overlap=queue")
    assert said.code == 0, said.err
    assert "edited updated: every day at 09:00 (Europe/Berlin)" in said.out
    assert len(ROW.findall(said.out)) == 5
    view = cli.ask("edit", "edited", "--url", "http://127.0.0.1:9/", "-o", "json").json
    assert view["http"] == {"method": "POST", "url": "http://127.0.0.1:9/"}
    assert "command" not in view
    assert (view["timeout"], view["overlap"]) == ("5m", "queue")
    assert cli.ask("edit", "edited", "--set", "timeout=null", "-o", "json").json["timeout"] == "2h"


def test_a_bad_edit_changes_nothing(cli: Cli) -> None:
    """The fault is told with the option."""
    cli.ask("add", "kept", "--every", "1h", "--command", "true")
    said = cli.ask("edit", "kept", "--every", "soon")
    assert said.code == 2
    assert "--every: 'soon' is not a duration; write it like 90s" in said.err
    assert cli.ask("show", "kept", "-o", "json").json["schedule"]["every"] == "1h"


def test_edit_in_an_editor(cli: Cli, tmp_path: Path) -> None:
    """The definition is opened, and written back if it was changed."""
    cli.ask("add", "opened", "--every", "1h", "--command", "true")
    editor = _editor(tmp_path, "text = text.replace('1h', '4h')")
    said = cli.ask("edit", "opened", EDITOR=editor, VISUAL="")
    assert said.code == 0, said.err
    assert "opened updated: every 4 hours" in said.out
    said = cli.ask("edit", "opened", EDITOR=_editor(tmp_path, "pass"), VISUAL="")
    assert (said.code, said.out, said.err) == (0, "", "opened is unchanged\n")


def test_an_editor_never_overwrites_others(cli: Cli, tmp_path: Path) -> None:
    """What somebody else changed meanwhile stays, and the user is told."""
    cli.ask("add", "shared", "--every", "1h", "--command", "true")
    other = [sys.executable, "-m", "wakeful.cli.main", "edit", "shared", "--every", "5h"]
    editor = _editor(tmp_path, f"import subprocess; subprocess.run({other!r}); text = text.replace('1h', '9h')")
    said = cli.ask("edit", "shared", EDITOR=editor, VISUAL="")
    assert said.code == 1
    assert "was changed elsewhere in the meantime" in said.err
    assert cli.ask("show", "shared", "-o", "json").json["schedule"]["every"] == "5h"


def test_nonsense_from_an_editor_changes_nothing(cli: Cli, tmp_path: Path) -> None:
    """Text that is no JSON, a definition that is none, an editor that fails."""
    cli.ask("add", "fragile", "--every", "1h", "--command", "true")
    for change, code, words in (
        ("text = '{'", 2, "is not JSON"),
        ("text = text.replace('1h', 'soon')", 2, "is not a duration"),
        ("raise SystemExit(3)", 1, "the editor failed"),
    ):
        said = cli.ask("edit", "fragile", EDITOR=_editor(tmp_path, change), VISUAL="")
        assert said.code == code
        assert words in said.err
    assert cli.ask("show", "fragile", "-o", "json").json["schedule"]["every"] == "1h"


def _editor(folder: Path, change: str) -> str:
    """A program that edits the file it is given as an editor would."""
    script = folder / "editor.py"
    script.write_text(
        "import os, sys, pathlib\n"
        "file = pathlib.Path(sys.argv[1])\n"
        "text = file.read_text()\n"
        f"before = text\n{change}\n"
        "if text != before:\n"
        "    file.write_text(text)\n"
        "    os.utime(file, (2_000_000_000, 2_000_000_000))\n"
    )
    return f"{shlex.quote(sys.executable)} {shlex.quote(str(script))}"


def test_pause_and_resume(cli: Cli) -> None:
    """Until resumed, or until a time; each says what comes next."""
    cli.ask("add", "rests", "--every", "1h", "--command", "true")
    said = cli.run("pause", "rests")
    assert (said.code, said.out) == (0, "rests paused; to resume it: wakeful resume rests\n")
    said = cli.ask("pause", "rests", "--until", "2h")
    assert re.fullmatch(r"rests paused until \w{3} [\d :-]+ CES?T \(in 2h\)\n", said.out)
    assert cli.ask("pause", "rests", "--until", "2099-01-01T00:00:00Z", "-o", "json").json["status"] == "paused"
    assert "rests is paused" in cli.ask("next", "rests").err
    said = cli.run("resume", "rests")
    assert re.fullmatch(r"rests resumed; next: \w{3} [\d :-]+ CES?T \(in .+\)\n", said.out)
    assert cli.ask("resume", "rests", "-o", "json").json["status"] == "idle"


@pytest.mark.parametrize(
    ("until", "words"),
    [("soon", "is not a date and time"), ("2030-01-01T00:00", "has no offset"), ("1999-01-01T00:00:00Z", "past")],
)
def test_a_pause_until_nowhere_is_refused(cli: Cli, until: str, words: str) -> None:
    """A time that cannot be meant names its option and its cure."""
    cli.ask("add", "awake", "--every", "1h", "--command", "true")
    said = cli.ask("pause", "awake", "--until", until)
    assert said.code == 2
    assert words in said.err


def test_rm(cli: Cli) -> None:
    """It is gone, for people and for programs."""
    cli.ask("add", "gone", "--manual", "--command", "true")
    cli.ask("add", "gone-too", "--manual", "--command", "true")
    assert cli.run("rm", "gone").out == "gone removed\n"
    assert cli.ask("rm", "gone-too", "-o", "json").json == {"slug": "gone-too", "removed": True}
    assert cli.ask("show", "gone").code == 1


def test_texts_of_others_are_inert(cli: Cli) -> None:
    """Escape sequences and direction marks in a definition, an output or an error do nothing, and are seen."""
    nasty = "\x1b[2J\x9b31m\u202egnp.exe [red]"
    cli.ask(
        "add",
        "nasty",
        "--manual",
        "--command",
        shlex.join(["sh", "-c", 'printf %s "$0" | tee /dev/stderr; false', nasty]),
    )
    ran = cli.ask("run", "nasty", "--wait")
    for said in (ran, cli.ask("show", "nasty"), cli.ask("runs", "nasty"), cli.ask("log", "nasty")):
        assert not set(said.out + said.err) & set("\x1b\x9b\u202e")
    assert "␛[2J<U+009B>31m<U+202E>gnp.exe [red]" in ran.out
    shown = cli.ask("show", "nasty", "-o", "json")
    assert not set(shown.out) & set("\x1b\x9b\u202e")
    assert shown.json["command"]["argv"][-1] == nasty
    unknown = cli.ask("show", "\x1b[2Jx")
    assert unknown.code == 1
    assert "\x1b" not in unknown.err
    assert json.loads(shown.out) == shown.json


def complete(cli: Cli, words: str) -> list[str]:
    """What bash is offered for the last word."""
    asked = {"_WAKEFUL_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)}
    return [line.partition(",")[2] for line in cli.run(**asked).out.splitlines() if line]


def test_slugs_are_completed_by_the_daemon(cli: Cli) -> None:
    """Those that begin like what was typed; commands and options as well."""
    for slug in ("alpha", "alert", "beta"):
        cli.ask("add", slug, "--manual", "--command", "true")
    assert complete(cli, "wakeful show al") == ["alert", "alpha"]
    assert complete(cli, "wakeful sta") == ["status", "stats"]


def test_completion_without_a_daemon_offers_nothing(alone: Cli) -> None:
    """And says nothing into the line that is being typed."""
    assert complete(alone, "wakeful show al") == []


def test_add_when_takes_words(cli: Cli) -> None:
    """`--when` says how it was understood, and refuses what has two meanings with both."""
    added = cli.ask("add", "stand-up", "--when", "weekdays at 9:00", "--tz", "Asia/Shanghai", "--command", "true")
    assert "every weekday at 09:00 (Asia/Shanghai)" in added.out
    refused = cli.run("add", "other", "--when", "9:00", "--command", "true")
    assert refused.code == 2
    assert "write 'every day at 09:00' or" in refused.err


def test_pausing_and_resuming_all(cli: Cli) -> None:
    """What was paused by itself is left alone; both need --all or a slug, not both."""
    cli.ask("add", "together", "--every", "1h", "--command", "true")
    cli.ask("add", "alone", "--every", "1h", "--command", "true")
    cli.ask("pause", "alone")
    said = cli.ask("pause", "--all")
    assert (said.code, "to resume them: wakeful resume --all" in said.out) == (0, True)
    assert cli.ask("show", "together", "-o", "json").json["statusReason"] == "with all schedules"
    resumed = cli.ask("resume", "--all", "-o", "json").json["slugs"]
    assert ("together" in resumed, "alone" in resumed) == (True, False)
    assert cli.ask("pause").code == 2
    assert cli.ask("resume", "alone", "--all").code == 2
    cli.ask("rm", "together")
    cli.ask("rm", "alone")
