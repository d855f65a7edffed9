"""APScheduler's job store, as version 3.11.3 wrote it. The times of the year are those that its triggers gave."""

import json
import pickle
import sqlite3
from pathlib import Path

import pytest

from moving.kit import CORPUS, STARTS, known_as, read, year_of
from wakeful.integrations.imports.entries import Entry, EntryRefused, SourceRefused
from wakeful.integrations.imports.fitting import fit
from wakeful.integrations.imports.inert_pickle import Made, Named, read_pickle

YEAR = json.loads((CORPUS / "apscheduler-3.11.3-year.json").read_text())


def store(folder: Path) -> Path:
    path = folder / "jobs.sqlite"
    with sqlite3.connect(path) as made:
        made.executescript((CORPUS / "apscheduler-3.11.3.sql").read_text())
    made.close()
    return path


@pytest.fixture
def entries(tmp_path: Path) -> dict[str, Entry]:
    (tmp_path / "reports.py").write_text("raise RuntimeError('loaded')\n")
    return {entry.ref: entry for entry in read("apscheduler", store(tmp_path))}


@pytest.mark.parametrize("ref", [ref for ref in YEAR if ref != "in-the-gap"])
def test_a_year_of_times_is_the_librarys_own(entries: dict[str, Entry], ref: str) -> None:
    """Ranges, steps, weekdays from Monday, the last day, an nth weekday, an interval; across both changes of the
    clock."""
    assert known_as(year_of(entries[ref])) == YEAR[ref]


def test_a_time_in_the_gap_is_refused(entries: dict[str, Entry]) -> None:
    """APScheduler runs it an hour later; a schedule right after the gap."""
    entry = entries["in-the-gap"]
    assert entry.times is not None
    assert known_as(list(entry.times(STARTS[0], 366))) == YEAR["in-the-gap"]
    problem = fit(entry.schedule, entry.times, now=STARTS[0])[1]
    assert problem is not None and "2027-03-28T01:30:00.000Z in the source, 2027-03-28T01:00:00.000Z here" in problem


def test_what_a_job_becomes(entries: dict[str, Entry], tmp_path: Path) -> None:
    """Its function with its arguments, in the folder of its program; its policies; a note for what means something
    else."""
    nightly = entries["nightly"]
    argv = nightly.action["command"]["argv"]
    assert argv[:2] == ["python3", "-c"] and "reports.nightly('mon', copies=2)" in argv[2]
    assert nightly.action["command"]["cwd"] == str(tmp_path) and nightly.draft is None
    assert nightly.options["maxLateness"] == "5m" and nightly.options["catchUp"] == "once"
    assert nightly.name == "nightly-report" and nightly.source.startswith("reports:nightly cron[")
    assert entries["month-end"].options["catchUp"] == "all" and "maxLateness" not in entries["month-end"].options
    assert entries["second-friday"].is_paused and not nightly.is_paused
    assert entries["poll"].options["stagger"] == "30s" and any("jitter" in note for note in entries["poll"].notes)
    assert any("up to 3 runs" in note for note in entries["hours"].notes)
    assert entries["once"].schedule == {"type": "once", "at": "2027-03-28T01:30:00.000Z"}


def test_what_a_schedule_cannot_express_is_refused(entries: dict[str, Entry]) -> None:
    """With the reason."""
    reasons = {ref: str(entries[ref].refused) for ref in ("either", "calendar", "weeks", "future")}
    assert "OrTrigger" in reasons["either"] and "CalendarIntervalTrigger" in reasons["calendar"]
    assert "names a week" in reasons["weeks"] and "begins at 2029-12-31T23:00:00.000Z" in reasons["future"]


def test_the_interpreter_of_the_program_is_used(tmp_path: Path) -> None:
    """If there is an environment next to it. Without its module there is nothing to run: a draft."""
    assert all(entry.draft for entry in read("apscheduler", store(tmp_path)) if entry.refused is None)
    (tmp_path / "reports.py").touch()
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()
    entry = next(entry for entry in read("apscheduler", tmp_path / "jobs.sqlite") if entry.ref == "nightly")
    assert entry.draft is None and entry.action["command"]["argv"][0] == str(python)


class Bomb:
    """What loading its pickle would run."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return Path.touch, (str(Path(Bomb.place)),)  # type: ignore[return-value]

    place = ""


def test_a_pickle_is_never_loaded(tmp_path: Path) -> None:
    """What it names stays a name."""
    Bomb.place = str(tmp_path / "touched")
    data = pickle.dumps({"version": 1, "func": "a:b", "trigger": Bomb()})
    made = read_pickle(data)["trigger"]
    assert isinstance(made, Made) and made.args == (Bomb.place,)
    with sqlite3.connect(store(tmp_path)) as jobs:
        jobs.execute("UPDATE apscheduler_jobs SET job_state = ?", (data,))
    jobs.close()
    assert {entry.refused for entry in read("apscheduler", tmp_path / "jobs.sqlite")} == {"its pickle has no trigger"}
    assert not (tmp_path / "touched").exists()


@pytest.mark.parametrize("protocol", range(1, pickle.HIGHEST_PROTOCOL + 1))
def test_plain_data_of_each_protocol(protocol: int) -> None:
    """As pickle reads it; sets become lists."""
    given = {
        "a": [1, -2, 2**70, 1.5, None, True, False, "ü", b"x"],
        "b": ((), (1,), (1, 2), (1, 2, 3, 4)),
        3: {"c": {}},
    }
    shared = [given["a"], given["a"]]
    read_back = read_pickle(pickle.dumps([given, shared], protocol=protocol))
    if protocol < 3:  # bytes are a call there
        read_back[0]["a"][-1] = b"x"
    assert read_back == [given, shared]
    if protocol > 1:
        assert read_pickle(pickle.dumps(Path, protocol=protocol)) == Named(Path.__module__, "Path")


@pytest.mark.parametrize(
    "data", [b"", b"not a pickle", b"\x80\x04.", b"\x80\x04]e.", b"\x80\x04h\x05.", b"cos\nsystem\n"]
)
def test_what_is_no_pickle_is_refused(data: bytes) -> None:
    """Without an error of another kind."""
    with pytest.raises(EntryRefused):
        read_pickle(data)


def test_another_file_is_refused(tmp_path: Path) -> None:
    """A database without jobs, and a call without a file."""
    sqlite3.connect(tmp_path / "empty.sqlite").close()
    (tmp_path / "empty.sqlite").touch()
    with pytest.raises(SourceRefused, match="apscheduler_jobs"):
        read("apscheduler", tmp_path / "empty.sqlite")
    with pytest.raises(SourceRefused, match="name the SQLite file"):
        read("apscheduler")
