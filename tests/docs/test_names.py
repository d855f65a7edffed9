"""The page with the names that people know: each of our names exists, and each example runs."""

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest

from docs.blocks import ROOT
from edges.cli.kit import Cli, daemon
from wakeful.api.python import Wakeful
from wakeful.cli.main import root
from wakeful.core.description import Object
from wakeful.core.schedule.definition import SCHEDULE
from wakeful.core.workflow.definition import WORKFLOW

PAGE = ROOT / "docs" / "names.md"
SETTINGS = """
[agents.default]
adapter = "command"
argv = ["cat"]
[heartbeat]
enabled = true
[slots.main]
api_key = "not-a-real-key"
base_url = "http://127.0.0.1:9"
[limits]
agent_interval_min = "10m"
"""
SYSTEMS = {
    "cron", "systemd timers", "APScheduler", "Celery beat", "OpenClaw", "Temporal schedules",
    "Session schedules (Caco)",
    "A job scheduler with callbacks", "Heartbeat, cron and delivery (Open Alice)", "Quota of a coding plan (GLM-Tray)",
    "Producers and consumers with `wakeAt`",
}  # fmt: skip


class Row(NamedTuple):
    """One name of theirs, ours, and an example."""

    system: str
    theirs: str
    ours: str
    example: str


def rows() -> Iterator[Row]:
    system = ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        system = line.removeprefix("## ") if line.startswith("## ") else system
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| ") and len(cells) == 3 and cells[2] != "example":
            yield Row(system, *cells)


ROWS = list(rows())


def test_each_system_has_its_names() -> None:
    """The five designs, and the programs that people come from."""
    assert {row.system for row in ROWS} == SYSTEMS
    for system in SYSTEMS:
        assert sum(row.system == system for row in ROWS) >= 7, system


def is_command(text: str) -> bool:
    command: click.Command | None = root
    for word in shlex.split(text)[1:]:
        assert isinstance(command, click.Group)
        command = command.get_command(click.Context(command), word)
    return command is not None


def fields_of(described: Object[Any]) -> Iterator[str]:
    for field in described.fields:
        yield field.name
        for inner in field.kind.inner:
            yield from (f"{field.name}.{name}" for name in fields_of(inner))


@cache
def known() -> frozenset[str]:
    """Fields of definitions, types of timings, settings, and the nouns of the glossary."""
    glossary = re.findall(r"^\| ([^|]+) \|", (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8"), re.M)
    nouns = {noun.strip() for cell in glossary for noun in cell.split(",")}
    pages = {name: (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in ("definition", "settings")}
    written = set(re.findall(r"^\| `([\w.]+)` \|", pages["definition"], re.M))
    written |= set(re.findall(r'"type": "(\w+)"', pages["definition"])) | {"wakeAt"}  # which a handler returns
    settings, table = set(), ""
    for line in pages["settings"].splitlines():
        if header := re.match(r"###? `\[([\w.]+)\]`", line):
            table = header[1]
            settings |= {f"[{table}]", table}
        elif setting := re.match(r"\| `(\w+)` \|", line):
            settings.add(f"{table}.{setting[1]}")
    return frozenset({*nouns, *written, *fields_of(SCHEDULE), *fields_of(WORKFLOW), *settings})


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.system}: {row.theirs}")
def test_each_of_our_names_exists(row: Row) -> None:
    """A command, a field, a setting, a route, a method, or a noun of the glossary."""
    paths = (ROOT / "docs" / "rest.md").read_text(encoding="utf-8")
    for name in re.findall(r"`([^`]+)`", row.ours):
        if name.startswith("wakeful "):
            assert is_command(name), name
        elif name.startswith("app."):
            assert hasattr(Wakeful, name.removeprefix("app.")), name
        elif re.match(r"(GET|PUT|POST|PATCH|DELETE) /", name):
            assert name.partition(" ")[2] in paths, name
        else:
            assert name in known(), name


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    home = Path(tmp_path_factory.mktemp("names")) / "home"
    home.mkdir(mode=0o700)
    (home / "wakeful.toml").write_text(SETTINGS)
    (home / "wakeful.toml").chmod(0o600)
    with daemon(home) as started:
        yield started


@pytest.mark.parametrize("system", sorted(SYSTEMS))
def test_each_example_runs(cli: Cli, system: str) -> None:
    """In the order of its table, on a daemon."""
    for row in ROWS:
        if row.system == system:
            said = cli.ask(*shlex.split(row.example.strip("`"))[1:])
            assert said.code == 0, f"{row.example}: {said.err}{said.out}"
