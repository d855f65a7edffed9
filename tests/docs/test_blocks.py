"""Every block of every page is run, in the order in which a reader meets them."""

import re
import shlex
import shutil
import subprocess
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from click import Context

from docs.blocks import ALL, LANGUAGES, ROOT, WITH_BLOCKS, Block, blocks
from docs.machine import NEWS, Machine
from docs.reader import DATABASE, MINUTES, THIS_RUN, WITHIN, Reader
from wakeful.cli.main import root

STARTS = re.compile(r"^(?:\S*wakeful (?:--home \S+ )?up|make up)\b", re.M)
NEEDED = {"curl": r"^\s*curl ", "git": r"^\s*git "}
"""Programs that are not everywhere, and how a page shows that it needs one."""
LONG = [block for block in ALL if block.takes_minutes]
WITH_PARSER = {"bench": "bench.__main__", "worlds": "worlds.__main__"}
SHOWN = {
    "docs/heartbeat.md": (r"Take it off the stove", r"succeeded \(sent\)"),
    "docs/delivery.md": (r"good morning", r"dead +.*nowhere|nowhere.*dead", r"wakeful outbox retry"),
    "docs/workflows.md": (r"^letter 1$", r"^a letter from me$", r"2 consumed"),
    "docs/several-machines.md": (r"nodes: 2 ticking: process \d+ on \S+, process \d+ on \S+",),
    "docs/python.md": (r"^tick 20\d\d-", r"^to a person: good morning"),
    "docs/first-schedule.md": (r"stand-up succeeded", r"tea added"),
    "docs/self-scheduling.md": (r"coder\.wake-\w+ ", r"waits for a person to approve it", r"coder\.mondays approved"),
    "docs/operating.md": (r"Updating \w+\.\.\w+", r"unknown \(restored\)|missed \(restored\)|keep-me"),
}
"""What a page promises, and the terminal has to show."""


def page_id(page: Path) -> str:
    return str(page.relative_to(ROOT))


ALWAYS_FOLLOWED = {"README.md"}
"""Pages that `make test` follows; `make torture` follows the others."""


def pages() -> list[Any]:
    return [
        page if page_id(page) in ALWAYS_FOLLOWED else pytest.param(page, marks=pytest.mark.torture)
        for page in WITH_BLOCKS
    ]


@pytest.mark.parametrize("page", pages(), ids=page_id)
def test_a_reader_who_follows_the_page_succeeds(page: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Each command, program and setting works as it stands there, and shows what the page says."""
    followed = [block for block in blocks(page) if block.language != "text" and not block.takes_minutes]
    reader = reader_of(followed, tmp_path, request)
    for pattern in SHOWN.get(page_id(page), ()):
        assert re.search(pattern, "\n".join(reader.seen), re.M), pattern
    if (reader.machine.folder / "origin.git").exists():  # a new version was fetched, and is what runs from then on
        assert (reader.machine.clone / "src" / "wakeful" / "__init__.py").read_text().endswith(NEWS)


@pytest.mark.torture
@pytest.mark.timeout(MINUTES + WITHIN)
@pytest.mark.parametrize("block", LONG, ids=lambda block: block.place)
def test_what_takes_minutes_is_run_too(block: Block, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """As it stands, but for the line that runs this very test."""
    reader_of([block], tmp_path, request)


@pytest.mark.torture
def test_a_new_release_is_installed_by_the_same_lines(tmp_path: Path) -> None:
    """One that is made of something else: the environment is made again, and the new version is what runs."""
    machine = Machine(tmp_path, has_git=True)
    shutil.rmtree(machine.clone / ".venv")  # a stand-in made of programs of this test, which pip must not install into
    reader = Reader(machine)
    file = machine.folder / "upstream" / "pyproject.toml"
    newer = re.sub(r'^version = ".+"', 'version = "99.0"', file.read_text(encoding="utf-8"), count=1, flags=re.M)
    machine.publish(file, newer)
    for line in ("git pull", "make venv"):
        ended = reader.ended(line.split(), within=MINUTES)
        assert ended.returncode == 0, ended.stderr
    assert reader.ended(["wakeful", "--version"]).stdout == "wakeful 99.0\n"


def reader_of(followed: list[Block], folder: Path, request: pytest.FixtureRequest) -> Reader:
    """A reader who has followed these blocks of a page."""
    typed = "\n".join(block.text for block in followed if block.language == "sh")
    for program, pattern in NEEDED.items():
        if re.search(pattern, typed, re.M) and shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    has_git = re.search(NEEDED["git"], typed, re.M) is not None or any(block.takes_minutes for block in followed)
    database = request.getfixturevalue("url") if DATABASE in typed else None
    reader = Reader(Machine(folder, has_git=has_git), database=database)
    try:
        if typed and not STARTS.search(typed) and not all(block.takes_minutes for block in followed):
            reader.start_daemon()
        for block in followed:
            reader.follow(block)
    finally:
        reader.leave()
    return reader


@pytest.mark.parametrize("block", LONG, ids=lambda block: block.place)
def test_what_takes_minutes_can_be_meant(block: Block) -> None:
    """Each line names a target of make, or a program of ours with options that it has; the torture run tries them."""
    for line in block.text.splitlines():
        words = shlex.split(line, comments=True)
        if words[0] == "make":
            subprocess.run([*words, "-n"], cwd=ROOT, check=True, capture_output=True)
        elif words[0] == "wakeful":
            command = root.get_command(Context(root), words[1])
            assert command is not None
            command.make_context(words[1], words[2:])
        else:
            assert words[:2] == [".venv/bin/python", "-m"], f"{block.place}: {line}"
            import_module(WITH_PARSER[words[2]]).parser().parse_args(words[3:])


def test_only_the_torture_run_is_left_out() -> None:
    """One line of all pages: whoever runs it runs this test."""
    lines = [
        line.partition("#")[0].strip() for block in ALL if block.language != "text" for line in block.text.splitlines()
    ]
    assert lines.count(THIS_RUN) == 1
    assert {block.language for block in LONG} == {"sh"}


def test_every_block_says_what_it_is() -> None:
    """And commands are not passed off as text."""
    for block in ALL:
        assert block.language in LANGUAGES, f"{block.place}: write one of {', '.join(sorted(LANGUAGES))}"
        if block.language == "text":
            assert not re.search(r"^\$? ?(wakeful|curl|make|\.venv/bin/\w+) ", block.text, re.M), block.place
