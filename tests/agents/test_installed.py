"""Which agents are installed, and in which version."""

import os
import time
from pathlib import Path

import pytest

from patience import PATIENCE
from wakeful.integrations.agents.programs import Versions, find_program, installed, missing


def program(folder: Path, name: str, source: str = "echo 1.2.3") -> Path:
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text(f"#!/bin/sh\n{source}\n")
    file.chmod(0o700)
    return file


def test_agents_are_found_in_the_order_of_preference(tmp_path: Path) -> None:
    for name in ("cursor-agent", "codex", "claude"):
        program(tmp_path, name)
    found = installed(str(tmp_path))
    assert [(one.adapter, one.program) for one in found] == [
        ("claude", "claude"),
        ("codex", "codex"),
        ("cursor", "cursor-agent"),
    ]
    assert found[0].path == str(tmp_path / "claude")


def test_a_file_that_cannot_be_run_is_no_program(tmp_path: Path) -> None:
    program(tmp_path, "codex").chmod(0o600)
    assert installed(str(tmp_path)) == []
    assert find_program("codex", str(tmp_path)) is None


def test_a_missing_program_is_named_with_the_path_that_was_searched(tmp_path: Path) -> None:
    said = missing("codex", f"/nowhere{os.pathsep}{tmp_path}")
    assert said is not None
    assert "'codex'" in said
    assert f"/nowhere{os.pathsep}{tmp_path}" in said
    assert "install it" in said


def test_a_missing_path_is_named_as_it_is(tmp_path: Path) -> None:
    said = missing(str(tmp_path / "codex"))
    assert said is not None
    assert str(tmp_path / "codex") in said
    program(tmp_path, "codex")
    assert missing(str(tmp_path / "codex")) is None


@pytest.mark.parametrize(
    ("source", "version"),
    [
        ("echo '2.1.325 (Claude Code)'", "2.1.325"),
        ("echo codex-cli 0.166.0; echo WARNING: 9.9.9 >&2", "0.166.0"),
        ("echo 'GitHub Copilot CLI 1.0.102.'", "1.0.102"),
        ("echo 'no number here'", None),
        ("exit 1", None),
    ],
)
def test_the_version_is_read_from_what_a_program_prints(tmp_path: Path, source: str, version: str | None) -> None:
    assert Versions().of(str(program(tmp_path, "agent", source))) == version


def test_a_version_is_asked_for_once_until_the_file_changes(tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    file = program(tmp_path, "agent", f"echo x >> {calls}; echo 1.0.0")
    versions = Versions()
    assert [versions.of(str(file)) for _ in range(3)] == ["1.0.0"] * 3
    assert calls.read_text() == "x\n"
    program(tmp_path, "agent", "echo 2.0.0")
    os.utime(file, (time.time() + 10, time.time() + 10))
    assert versions.of(str(file)) == "2.0.0"


def test_a_program_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    file = program(tmp_path, "agent", f"sleep 600 &\necho $! > {pids}\nwait")
    assert Versions(within=5.0).of(str(file)) is None
    child = int(pids.read_text())
    give_up_at = time.monotonic() + PATIENCE
    while Path(f"/proc/{child}/stat").exists() and " Z " not in Path(f"/proc/{child}/stat").read_text():
        assert time.monotonic() < give_up_at
        time.sleep(0.05)


def test_a_program_is_asked_for_its_version_without_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "9.9.9")
    assert Versions().of(str(program(tmp_path, "agent", 'echo "${OPENAI_API_KEY:-1.0.0}"'))) == "1.0.0"
