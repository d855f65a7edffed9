"""`wakeful open`, and how the command line reaches the daemon."""

import json
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from edges.cli.kit import Cli, daemon


def log_in(link: str) -> int:
    """What the page does with a link: it posts the code."""
    address, _, code = link.partition("/#code=")
    request = urllib.request.Request(f"{address}/login", json.dumps({"code": code}).encode(), method="POST")
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_open_prints_a_link_that_logs_in_once(cli: Cli) -> None:
    """Without a display it is printed; used twice, it is refused."""
    said = cli.run("open", "--print")
    link = said.out.strip()
    assert (said.code, log_in(link), log_in(link)) == (0, 204, 401)
    told = json.loads(cli.run("open", "-o", "json").out)
    assert set(told) == {"link", "expiresAt"}


def test_unused_links_are_void_after_logging_out_all(cli: Cli) -> None:
    """Everyone has to log in again."""
    link = cli.run("open", "--print").out.strip()
    cli.run("open", "--print", "--log-out-all")
    assert log_in(link) == 401


def test_the_command_line_needs_no_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over the socket; and over TCP with the home's token where the path is too long for a socket."""
    monkeypatch.delenv("WAKEFUL_TOKEN", raising=False)
    for home in (tmp_path / "h", tmp_path / ("long" * 40) / "h"):
        with daemon(home) as started:
            assert (home / "wakeful.sock").exists() == (len(str(home)) < 80)
            assert started.run("ls").code == 0
            assert started.run("open", "--print").code == 0
