"""Every example of examples/ works as it stands."""

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from edges.cli.kit import daemon
from patience import PATIENCE

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name: str, folder: Path) -> str:
    """What an example prints; warnings are errors."""
    command = [sys.executable, "-W", "error", str(EXAMPLES / name), str(folder)]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=2 * PATIENCE, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_every_example_is_listed() -> None:
    """The README names them all, and this file tries them all."""
    listed = set(re.findall(r"^\| \[([\w./]+?)/?\]", (EXAMPLES / "README.md").read_text(encoding="utf-8"), re.M))
    assert listed == {entry.name for entry in EXAMPLES.iterdir() if entry.suffix == ".py" or entry.is_dir()}
    tried = Path(__file__).read_text(encoding="utf-8")
    elsewhere = {"plugin"}  # tests/plugins/test_example_package.py
    assert all(f'"{name}"' in tried for name in listed - elsewhere)


def test_a_report_is_written_once(tmp_path: Path) -> None:
    """The run succeeds and leaves one file; the program says when the next one is due."""
    said = run("report.py", tmp_path)
    assert "report succeeded" in said and said.count("next: ") == 5
    assert len(list(tmp_path.glob("report-*.txt"))) == 1


@pytest.mark.torture
def test_a_digest_has_all_letters(tmp_path: Path) -> None:
    """Three letters, one digest; a second start sends nothing again."""
    assert "an invoice, an invitation, a reminder" in run("mail_digest.py", tmp_path)
    written = (tmp_path / "digest.txt").read_text()
    run("mail_digest.py", tmp_path)
    assert (tmp_path / "digest.txt").read_text() == written


def test_a_receiver_acts_once_for_each_delivery() -> None:
    """The same delivery, sent twice, is printed once."""
    command = [sys.executable, str(EXAMPLES / "receiver.py"), "0"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    try:
        port = int(child.stdout.readline().rsplit(" ", 1)[1])
        for delivery, text in (("1", "good morning"), ("1", "good morning"), ("2", "good night")):
            body = json.dumps({"id": delivery, "text": text, "channel": "hook"}).encode()
            request = urllib.request.Request(f"http://127.0.0.1:{port}/in", body, {"X-Wakeful-Delivery": delivery})
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                assert answer.status == 204
        assert [child.stdout.readline() for _ in range(2)] == ["hook: good morning\n", "hook: good night\n"]
    finally:
        child.kill()
        child.communicate(timeout=PATIENCE)


def test_the_home_is_accepted_and_its_files_become_schedules(tmp_path: Path) -> None:
    """Settings and definitions pass `check`, and a daemon that starts there has the three schedules."""
    home = tmp_path / "home"
    shutil.copytree(EXAMPLES / "home", home)
    home.chmod(0o700)
    with daemon(home) as started:
        for file in (home / "wakeful.toml", *sorted((EXAMPLES / "home").glob("schedule/*/definition.json"))):
            assert started.ask("check", str(file)).code == 0, file
        known = {one["slug"]: one["status"] for one in started.ask("ls", "--all", "-o", "json").json["schedules"]}
        assert known == {"standup": "idle", "backup": "idle", "shop": "disabled"}
    assert os.access(home / "wakeful.db", os.R_OK)
