"""`wakeful export`, `wakeful apply`, and their routes."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from edges.cli.kit import Cli, daemon

SLOT: dict[str, Any] = {"provider": "http", "quotaUrl": "https://quota.example/now", "apiKey": "s3cret-key"}


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    with daemon(tmp_path_factory.mktemp("home") / "wakeful") as started:
        yield started


def test_a_folder_for_git(cli: Cli, tmp_path: Path) -> None:
    """Export, edit, show the diff, apply, prune; without secrets, and the stored secret survives."""
    folder = tmp_path / "repo"
    assert cli.ask("add", "tidy", "--every", "2h", "--command", "true").code == 0
    assert cli.ask("slots", "add", "main", *(f"--set={name}={value}" for name, value in SLOT.items())).code == 0
    assert cli.ask("export", str(folder)).code == 0
    texts = {file.name: file.read_text() for file in folder.rglob("*.json")}
    assert sorted(texts) == ["main.json", "tidy.json"] and "s3cret" not in "".join(texts.values())
    assert cli.ask("-o", "json", "export", str(folder)).json["written"] == []

    file = folder / "schedules" / "tidy.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "timeout": "9m"}))
    (folder / "slots" / "main.json").write_text(json.dumps({**json.loads(texts["main.json"]), "poll": "45m"}))
    shown = cli.ask("apply", str(folder))
    assert '+  "timeout": "9m"' in shown.out and "2 to update" in shown.out and "nothing was changed" in shown.err
    assert cli.ask("-o", "json", "show", "tidy").json["timeout"] == "2h"
    assert cli.ask("apply", str(folder), "--apply").code == 0
    assert cli.ask("-o", "json", "show", "tidy").json["timeout"] == "9m"
    assert cli.ask("-o", "json", "apply", str(folder), "--apply").json["diff"] == ""

    file.unlink()
    pruned = cli.ask("-o", "json", "apply", str(folder), "--apply", "--prune")
    assert pruned.json["remove"] == ["schedules/tidy.json"] and cli.ask("show", "tidy").code == 1
    slot = json.loads((folder / "slots" / "main.json").read_text())
    assert slot["poll"] == "45m"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("schedules/a.json", "{", "schedules/a.json: is not JSON"),
        ("schedules/big.json", " " * 1_048_577, "larger than"),
        ("schedules/link.json", None, "symbolic link"),
        ("schedules/UPPER CASE.json", "{}", "not that of a definition"),
    ],
)
def test_hostile_files_are_refused_by_name(cli: Cli, tmp_path: Path, name: str, content: str | None, said: str) -> None:
    """And nothing is written, not even the good ones."""
    good = {"schedule": {"type": "manual"}, "command": {"argv": ["true"]}}
    (tmp_path / "schedules").mkdir()
    (tmp_path / "schedules" / "aaa-good.json").write_text(json.dumps(good))
    if content is None:
        (tmp_path / name).symlink_to("/etc/passwd")
    else:
        (tmp_path / name).write_text(content)
    refused = cli.ask("apply", str(tmp_path), "--apply")
    assert refused.code == 2 and said in refused.err
    assert cli.ask("show", "aaa-good").code == 1


def test_export_needs_no_daemon(tmp_path: Path) -> None:
    """It reads the store; applying needs a daemon."""
    home = tmp_path / "home"
    with daemon(home) as started:
        assert started.ask("add", "tidy", "--every", "2h", "--command", "true").code == 0
    alone = Cli(home)
    assert alone.ask("export", str(tmp_path / "repo")).code == 0
    assert json.loads((tmp_path / "repo" / "schedules" / "tidy.json").read_text())["command"] == {"argv": ["true"]}
    assert alone.ask("apply", str(tmp_path / "repo")).code == 3
