"""The log of one run, read back from the files of its days."""

import json
from pathlib import Path
from typing import Any

import pytest

from features.kit import Bot, World, instant, virtual
from telemetry.kit import open_told
from wakeful import every
from wakeful.core.time.instants import DAY, HOUR, MINUTE, format_instant
from wakeful.observe import log_reading
from wakeful.observe.log import Log
from wakeful.observe.log_reading import read_run


def line(at: int, run_id: int, **more: Any) -> str:
    fields = {"ts": format_instant(at), "level": "info", "action": "run-started", "phase": "event"}
    return json.dumps({**fields, "details": {"runId": run_id, **more}}, separators=(",", ":")) + "\n"


def write(folder: Path, *written: str) -> None:
    folder.mkdir(exist_ok=True)
    for one in written:
        day = one[7:17] if one.startswith("{") else "2026-01-01"
        with (folder / f"{day}.jsonl").open("a") as file:
            file.write(one)


def numbers(folder: Path, run_id: int, since: str, until: str) -> list[int]:
    found = read_run(folder, run_id, since=instant(since), until=instant(until))
    assert not found.is_cut
    return [one["details"]["n"] for one in found.lines]


def test_only_its_own_lines_within_its_time_are_found(tmp_path: Path) -> None:
    """Whatever stands around them: other runs, other times, lines that were cut off, texts that look alike."""
    noon = instant("01-01 12:00:00")
    write(
        tmp_path,
        line(noon - HOUR, 7, n=0),
        line(noon, 7, n=1),
        line(noon, 77, n=2),
        '{"ts":"2026-01-01T12:00:00.000Z","details":{"runId":7\n',
        "not a line of ours\n",
        line(noon + 1, 8, text='"runId":7', n=3),
        line(noon + 5, 7, n=4),
        line(noon + HOUR, 7, n=5),
    )
    assert numbers(tmp_path, 7, "01-01 12:00:00", "01-01 12:00:01") == [1, 4]
    assert numbers(tmp_path, 9, "01-01 12:00:00", "01-01 12:00:01") == []
    assert numbers(tmp_path / "gone", 7, "01-01 12:00:00", "01-01 12:00:01") == []


def test_a_run_over_midnight_is_read_from_both_days(tmp_path: Path) -> None:
    """A day in between that has no file is left out."""
    start = instant("01-01 23:59:00")
    write(tmp_path, line(start, 7, n=1), line(start + 2 * DAY, 7, n=2))
    assert numbers(tmp_path, 7, "01-01 23:59:00", "01-04 00:10:00") == [1, 2]


def test_a_run_is_found_anywhere_in_a_large_file(tmp_path: Path) -> None:
    """By halving: only a small part of it is read."""
    begin = instant("01-01 00:00:00")
    step = 2_000
    text = "".join(line(begin + n * step, n, n=n, pad="x" * (n % 50)) for n in range(40_000))
    tmp_path.joinpath("2026-01-01.jsonl").write_text(text)
    for place in (0, 1, 499, 20_000, 39_999):
        at = begin + place * step
        found = read_run(tmp_path, place, since=at, until=at)
        assert [one["details"]["n"] for one in found.lines] == [place]


def test_what_is_read_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By lines and by bytes; that there is more is said."""
    noon = instant("01-01 12:00:00")
    write(tmp_path, *(line(noon + n, 7, n=n) for n in range(20)))
    monkeypatch.setattr(log_reading, "LINES_MAX", 5)
    found = read_run(tmp_path, 7, since=noon, until=noon + MINUTE)
    assert ([one["details"]["n"] for one in found.lines], found.is_cut) == ([0, 1, 2, 3, 4], True)
    monkeypatch.setattr(log_reading, "BYTES_MAX", 250)
    found = read_run(tmp_path, 8, since=noon, until=noon + MINUTE)
    assert (found.lines, found.is_cut) == ([], True)


@virtual
async def test_what_the_log_writes_is_what_is_read(world: World) -> None:
    """The lines of a real run, from its start to its end."""
    log = Log(world.path.parent / "logs", world.clock)
    app = await open_told(world, Bot(world), log.listen)
    await app.add("tick", every("1h"))
    await world.until("01-01 01:30:00")
    (run,) = await app.runs("tick")
    await app.fan_out.drained()
    assert log.drain()
    found = read_run(world.path.parent / "logs", run.run_id, since=instant("01-01 01:00:00"), until=world.now)
    assert [one["action"] for one in found.lines] == ["run-started", "run-ended"]
    log.close()
