"""The log: lines that programs and people can read, in files that come and go, and trouble that stays in the log."""

import json
import logging
import os
import shutil
import stat
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from features.kit import Bot, World, instant, virtual
from patience import PATIENCE
from telemetry.kit import open_told
from wakeful import every
from wakeful.core.time.instants import DAY, SECOND
from wakeful.observe.log import Log, LogHandler
from wakeful.observe.log_files import ServerLog
from wakeful.ports.clock import Moment
from wakeful.ports.exchange import RequestContext


class HandClock:
    """A clock set by hand; the log's thread reads it too."""

    def __init__(self, text: str = "01-01 12:00:00") -> None:
        self.now = instant(text)
        self.monotonic = 0

    def read(self) -> Moment:
        return Moment(self.now, self.monotonic)

    async def sleep(self, duration: int) -> None:
        raise NotImplementedError

    async def wait(self, bell: Any, duration: int) -> bool:
        raise NotImplementedError


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def log(home: Path, clock: HandClock) -> Iterator[Log]:
    made = Log(home / "logs", clock, server_log=home / "server.log")
    yield made
    made.close()


def lines(home: Path, day: str = "2026-01-01") -> list[dict[str, Any]]:
    """A day's lines, each of which must be JSON."""
    return [json.loads(line) for line in (home / "logs" / f"{day}.jsonl").read_text().splitlines()]


def test_a_line_has_the_fields_of_the_schema(log: Log, home: Path) -> None:
    """ts, level, action, phase, flow_id, duration_ms, slug or slot, details; what is not there is left out."""
    log.write(
        "scheduled-wake",
        level="warn",
        phase="error",
        flow_id="f1",
        duration_ms=12,
        slot="main",
        details={"error": "timeout", "tries": 2},
    )
    log.write("started", slug="daily")
    log.drain()
    assert lines(home) == [
        {
            "ts": "2026-01-01T12:00:00.000Z",
            "level": "warn",
            "action": "scheduled-wake",
            "phase": "error",
            "flow_id": "f1",
            "duration_ms": 12,
            "slot": "main",
            "details": {"error": "timeout", "tries": 2},
        },
        {"ts": "2026-01-01T12:00:00.000Z", "level": "info", "action": "started", "phase": "event", "slug": "daily"},
    ]


def test_an_exchange_shares_one_flow_id_and_says_how_long_it_took(log: Log, home: Path, clock: HandClock) -> None:
    """Request and response, or request and error."""
    about = RequestContext("quota-poll", slot="main")
    step, other = log.exchange(about), log.exchange(about)
    step("request", {"url": "http://127.0.0.1/quota"})
    clock.monotonic += 250
    step("response", {"status": 200})
    other("error", {"error": "connection refused"})
    log.drain()
    request, response, error = lines(home)
    assert request["flow_id"] == response["flow_id"] != error["flow_id"]
    assert (request["phase"], "duration_ms" in request) == ("request", False)
    assert (response["phase"], response["duration_ms"], response["details"]) == ("response", 250, {"status": 200})
    assert (error["phase"], error["level"], error["details"]["error"]) == ("error", "error", "connection refused")


def test_files_can_be_read_by_their_owner_only(log: Log, home: Path) -> None:
    """Even one that was there before, open to others."""
    (home / "logs").mkdir(parents=True)
    there = home / "logs" / "2026-01-01.jsonl"
    there.touch(mode=0o644)
    log.write("started", text="hello")
    log.drain()
    for path in (there, home / "server.log"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_each_day_has_its_file_and_old_ones_go(home: Path, clock: HandClock) -> None:
    """Three days are kept; files that are not ours stay."""
    log = Log(home / "logs", clock, days=3)
    for _ in range(6):
        log.write("tick")
        log.drain()
        clock.now += DAY
    (home / "logs" / "notes.txt").write_text("mine")
    log.write("tick")
    log.close()
    assert sorted(path.name for path in (home / "logs").iterdir()) == [
        "2026-01-05.jsonl",
        "2026-01-06.jsonl",
        "2026-01-07.jsonl",
        "notes.txt",
    ]


def test_keeping_fewer_days_takes_effect_at_once(home: Path, clock: HandClock) -> None:
    """The setting may change while running."""
    log = Log(home / "logs", clock, days=30)
    for _ in range(5):
        log.write("tick")
        log.drain()
        clock.now += DAY
    log.keep(1)
    log.write("tick")
    log.close()
    assert [path.name for path in (home / "logs").iterdir()] == ["2026-01-06.jsonl"]


def test_secrets_are_taken_out_by_value(home: Path, clock: HandClock) -> None:
    """In details at any depth, in names, in texts, and also where JSON would quote them."""
    secret = 'pa"ss\\wörd'
    log = Log(home / "logs", clock, server_log=home / "server.log", redact=lambda text: text.replace(secret, "••••"))
    log.write(
        "request",
        slug=f"x-{secret}",
        details={"headers": [{"Authorization": f"Bearer {secret}"}], secret: 1, "error": ValueError(secret)},
        text=f"sent {secret}\nand more",
    )
    log.close()
    written = (home / "logs" / "2026-01-01.jsonl").read_text() + (home / "server.log").read_text()
    assert "ss\\" not in written
    assert "wörd" not in written
    assert written.count("••••") == 5
    assert (home / "server.log").read_text() == "2026-01-01T12:00:00.000Z INFO  sent •••• and more\n"


def test_a_folder_that_vanishes_is_made_again(log: Log, home: Path) -> None:
    """Someone tidied up while the clock was running."""
    log.write("first", text="first")
    log.drain()
    shutil.rmtree(home)
    log.write("second", text="second")
    log.drain()
    assert [line["action"] for line in lines(home)] == ["second"]
    assert "second" in (home / "server.log").read_text()
    assert log.lost == 0


def test_a_file_that_was_moved_away_is_begun_anew(log: Log, home: Path) -> None:
    """As log rotation from outside does it."""
    log.write("first", text="first")
    log.drain()
    (home / "server.log").rename(home / "server.log.old")
    log.write("second", text="second")
    log.drain()
    assert "second" in (home / "server.log").read_text()
    assert "second" not in (home / "server.log.old").read_text()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
def test_a_full_disk_loses_lines_counts_them_and_says_so_afterwards(log: Log, home: Path, clock: HandClock) -> None:
    """Nobody who logs notices; the first line that can be written tells how many are missing."""
    (home / "logs").mkdir(parents=True)
    full = home / "logs" / "2026-01-01.jsonl"
    try:
        os.mknod(full, stat.S_IFCHR | 0o600, Path("/dev/full").stat().st_rdev)  # a link would not be followed
    except PermissionError:
        pytest.skip("only root may create a device")
    for _ in range(5):
        log.write("lost")
        log.drain()
    assert log.lost == 5
    assert "No space left" in (log.trouble or "")
    full.unlink()
    log.write("still lost")  # trouble was just met: the disk is left alone for a second
    log.drain()
    clock.monotonic += 2 * SECOND
    log.write("kept")
    log.drain()
    note, kept = lines(home)
    assert (note["action"], note["details"]["lines"], kept["action"]) == ("log-lost", 6, "kept")
    assert "No space left" in note["details"]["why"]
    assert log.trouble is None


def test_a_place_where_no_folder_can_be_made_harms_nobody(home: Path, clock: HandClock) -> None:
    """A file stands where the folder should be."""
    home.mkdir()
    (home / "logs").write_text("in the way")
    log = Log(home / "logs", clock)
    log.write("lost")
    log.drain()
    assert (log.lost, log.trouble is not None) == (1, True)
    log.close()


def test_more_than_can_be_written_is_dropped_and_counted(home: Path, clock: HandClock) -> None:
    """The queue has a limit; whoever logs never waits, even for a disk that hangs."""
    is_hanging, may_go_on = threading.Event(), threading.Event()

    def hang(text: str) -> str:
        is_hanging.set()
        may_go_on.wait(PATIENCE)
        return text

    log = Log(home / "logs", clock, waiting_max=10, redact=hang)
    log.write("hangs")
    assert is_hanging.wait(PATIENCE)
    for _ in range(17):
        log.write("more")
    assert log.lost == 7
    may_go_on.set()
    log.drain()
    log.close()
    actions = [line["action"] for line in lines(home)]
    assert actions == ["hangs", "log-lost", *["more"] * 10]


def test_half_a_line_left_by_a_crash_does_not_spoil_the_next(home: Path, clock: HandClock) -> None:
    """It is ended before the next one begins."""
    (home / "logs").mkdir(parents=True)
    (home / "logs" / "2026-01-01.jsonl").write_text('{"ts": "2026-01')
    log = Log(home / "logs", clock)
    log.write("next")
    log.close()
    half, following = (home / "logs" / "2026-01-01.jsonl").read_text().splitlines()
    assert (half, json.loads(following)["action"]) == ('{"ts": "2026-01', "next")


def test_something_json_does_not_know_is_written_as_text(log: Log, home: Path) -> None:
    """No value can end the log."""
    endless: dict[str, Any] = {}
    endless["self"] = endless
    log.write("odd", details={"set": {1}, "path": Path("x"), "endless": endless, "bytes": b"ab"})
    log.write("next")
    log.drain()
    odd, following = lines(home)
    assert (odd["details"]["path"], odd["details"]["bytes"], following["action"]) == ("x", "b'ab'", "next")


def test_what_the_loggers_say_is_in_both_files(log: Log, home: Path) -> None:
    """With the traceback in the JSON line, and one line only in server.log."""
    logger = logging.getLogger("wakeful.test-log")
    handler = LogHandler(log)
    logger.addHandler(handler)
    try:
        logger.warning("the clock came back by %d s", 90)
        try:
            raise ValueError("no\nsuch")
        except ValueError:
            logger.exception("a tick failed")
    finally:
        logger.removeHandler(handler)
    log.drain()
    first, second = lines(home)
    assert (first["level"], first["details"]["message"]) == ("warn", "the clock came back by 90 s")
    assert "ValueError: no\nsuch" in second["details"]["error"]
    assert len((home / "server.log").read_text().splitlines()) == 2


def test_server_log_has_a_limit(tmp_path: Path) -> None:
    """One predecessor is kept."""
    server = ServerLog(tmp_path / "server.log", size_max=100)
    for number in range(20):
        server.append(f"{number:<30}\n")
    server.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["server.log", "server.log.1"]
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 2 * 131


def test_closing_twice_and_logging_afterwards_is_harmless(log: Log) -> None:
    """At the end of a process things come in any order."""
    log.close()
    log.write("too late")
    log.close()
    assert log.lost == 1


@virtual
async def test_the_searches_people_know_find_a_schedule(world: World) -> None:
    """`grep SCHEDULER server.log | tail -20` and `grep 'zalem-daily-stats' server.log | tail -10`."""
    home = world.path.parent
    log = Log(home / "logs", world.clock, server_log=home / "server.log")
    bot = Bot(world)
    bot.script = [None, RuntimeError("connection refused\nat line 7")]
    app = await open_told(world, bot, log.listen)
    await app.add("zalem-daily-stats", every("1h"))
    await app.add("another", every("1h"))
    await world.until("01-01 02:30:00")
    log.close()
    found = _grep("SCHEDULER", home)
    assert len(found) >= 10
    of_schedule = _grep("zalem-daily-stats", home)
    assert [line[25:] for line in of_schedule] == [
        "INFO  [SCHEDULER] zalem-daily-stats: created",
        "INFO  [SCHEDULER] zalem-daily-stats: run 1 started (planned 2026-01-01T01:00:00.000Z, attempt 1, schedule)",
        "INFO  [SCHEDULER] zalem-daily-stats: run 1 succeeded after 0s",
        "INFO  [SCHEDULER] zalem-daily-stats: run 3 started (planned 2026-01-01T02:00:00.000Z, attempt 1, schedule)",
        "INFO  [SCHEDULER] zalem-daily-stats: run 3 succeeded after 0s",
    ]
    assert "another: run 2 failed after 0s: RuntimeError: connection refused at line 7" in "\n".join(found)
    ended = [line for line in lines(home) if line["action"] == "run-ended"]
    assert {line["slug"] for line in ended} == {"zalem-daily-stats", "another"}
    failed = next(line for line in ended if line["phase"] == "error")
    assert (failed["level"], failed["details"]["outcome"]) == ("error", "failed")


def _grep(word: str, home: Path) -> list[str]:
    return subprocess.run(
        ["grep", word, "server.log"], cwd=home, capture_output=True, text=True, check=True
    ).stdout.splitlines()


@virtual
async def test_every_fate_of_an_instant_has_its_line(world: World) -> None:
    """Started, ended, waiting, skipped, missed, and what befell the schedule and the node."""
    home = world.path.parent
    log = Log(home / "logs", world.clock, server_log=home / "server.log")
    bot = Bot(world, usual=25 * 60 * SECOND)
    bot.script = [RuntimeError("no")]
    app = await open_told(world, bot, log.listen)
    await app.add("tick", every("10m"), retry={"times": 1, "delay": "1m"})
    await world.until("01-01 00:50:00")
    await app.pause("tick")
    await app.resume("tick")
    await app.stop()
    await world.sleep("1h")
    await open_told(world, Bot(world), log.listen)
    await world.settle()
    log.close()
    actions = {line["action"] for line in lines(home)}
    assert {
        *("run-started", "run-ended", "run-waiting", "run-skipped", "run-missed", "node-entered", "node-left"),
        *("schedule-created", "schedule-paused", "schedule-resumed"),
    } <= actions


@virtual
async def test_a_log_that_cannot_be_written_does_not_stop_the_clock(world: World) -> None:
    """A file where its folder should be, from the beginning to the end."""
    blocked = world.path.parent / "blocked"
    blocked.write_text("in the way")
    log = Log(blocked / "logs", world.clock, server_log=blocked / "server.log")
    bot = Bot(world)
    app = await open_told(world, bot, log.listen)
    await app.add("tick", every("10m"))
    await world.until("01-01 01:05:00")
    log.close()
    assert len(bot.fires) == 6
    assert log.lost > 6


def test_the_thread_ends_with_the_log(home: Path, clock: HandClock) -> None:
    """Nothing is left behind, no thread and no open file."""
    before = len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").exists() else 0
    log = Log(home / "logs", clock, server_log=home / "server.log")
    log.write("one", text="one")
    log.close()
    assert not log._thread.is_alive()
    if before:
        assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_control_characters_are_visible_in_the_log_for_people(log: Log, home: Path) -> None:
    """An escape sequence in an error of a target would act on the terminal that shows the log."""
    log.write("failed", text="exited with 1: \x1b]0;owned\x07\x1b[2J\nnext")
    log.drain()
    written = (home / "server.log").read_text()
    assert "\x1b" not in written
    assert written.endswith("exited with 1: ␛]0;owned␇␛[2J next\n")


def test_a_link_in_place_of_the_log_is_not_followed(log: Log, home: Path, tmp_path: Path) -> None:
    """Its target got our lines, and our permissions."""
    target = tmp_path / "theirs"
    target.write_text("theirs\n")
    target.chmod(0o644)
    home.mkdir(parents=True, exist_ok=True)
    (home / "server.log").symlink_to(target)
    log.write("said", text="hello")
    log.drain()
    assert target.read_text() == "theirs\n"
    assert stat.S_IMODE(target.stat().st_mode) == 0o644
    assert "server.log" in (log.trouble or "") and "symbolic link, which is not followed; remove it" in (
        log.trouble or ""
    )
