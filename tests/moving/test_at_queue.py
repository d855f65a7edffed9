"""The queue of `at`: files that `at` 3.2.5 of Debian wrote."""

from pathlib import Path
from typing import Any

import pytest

from moving.kit import CORPUS, read, year_of
from moving.stand_ins import Machine
from wakeful.core.time.instants import parse_instant
from wakeful.integrations.imports.entries import Entry, SourceRefused

SPOOL = CORPUS / "at"
ROOT: dict[str, Any] = {"user": "root", "channels": frozenset({"mail"})}


def jobs(path: Path = SPOOL, **changes: Any) -> dict[str, Entry]:
    return {entry.ref: entry for entry in read("at", path, **{**ROOT, **changes})}


def test_a_job_with_its_variables_and_folder() -> None:
    """The shell's quoting of values with quotes and newlines; secrets are not stored."""
    job = jobs(user="root")["2"]
    assert job.refused is None and year_of(job) == []  # in 2027, more than a year ahead
    assert job.schedule == {"type": "once", "at": "2027-12-24T17:30:00.000Z"}
    command = job.action["command"]
    assert command["argv"] == ["sh", "-c", 'echo hello "it\'s" > greeting'] and command["cwd"] == "/srv/at-home"
    assert command["env"] == {
        "TZ": "Europe/Berlin", "LANG": "C", "PATH": "/usr/bin:/bin", "HOME": "/home/me", "GREETING": "it's a\nday",
    }  # fmt: skip
    assert command["passEnv"] == ["API_TOKEN"] and "tok" not in repr(job).replace("API_TOKEN", "")
    assert any("mails the output" in note for note in job.notes)


def test_mail_and_queues() -> None:
    """`at -m` needs a channel; a queue has a priority; batch waits for the load."""
    found = jobs()
    assert found["3"].options["deliver"] == {"channel": "mail", "to": "root"}
    assert found["3"].action["command"]["argv"][2] == "report --weekly\nexit 3"
    assert year_of(found["3"]) == [parse_instant("2027-03-28T12:00:00Z")]
    assert any("queue c" in note for note in found["3"].notes)
    assert "batch waits" in str(found["4"].refused)
    assert "add a channel named mail" in str(jobs(channels=frozenset())["3"].refused)


def test_a_umask_of_its_own_is_kept(tmp_path: Path) -> None:
    """The usual ones are what commands have anyway."""
    text = (SPOOL / "a0000201d14f1a").read_text()
    (tmp_path / "a0000201d14f1a").write_text(text.replace("umask 22", "umask 77"))
    command = jobs(tmp_path)["2"].action["command"]
    assert command["argv"][2].startswith("umask 77; echo hello")


def test_another_users_job_needs_root() -> None:
    """Else it would run as the wrong user; for root, as its own."""
    assert "it runs as root" in str(jobs(user="me")["2"].refused)


def test_the_queue_of_the_user_without_its_spool_folder(tmp_path: Path) -> None:
    """Which only root can read: from `atq` and `at -c`."""
    machine = Machine(tmp_path).install("nothing")
    (machine.bin / "atq").write_text("#!/bin/sh\nprintf '2\\t1829669400 a root\\n'\n")
    (machine.bin / "at").write_text(f"#!/bin/sh\ncat {SPOOL}/a0000201d14f1a\n")
    for name in ("atq", "at"):
        (machine.bin / name).chmod(0o755)
    (job,) = read("at", user="root", environ=machine.environ)
    assert (job.ref, job.schedule["at"]) == ("2", "2027-12-24T17:30:00.000Z")
    assert job.off is not None and job.off.what["argv"] == ["atrm", "2"]
    assert jobs()["2"].off is None  # a copy of a spool folder


def test_another_file_is_refused(tmp_path: Path) -> None:
    """By its name, and by its content."""
    (tmp_path / "notes").write_text("hello")
    with pytest.raises(SourceRefused, match="not a job of at"):
        read("at", tmp_path / "notes")
    (tmp_path / "a0000101c8c660").write_text("#!/bin/sh\nrm -rf /\n")
    with pytest.raises(SourceRefused, match="no line `# atrun`"):
        read("at", tmp_path)
