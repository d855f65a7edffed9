"""docs/cli.md says what the command line does, and nothing else."""

import re
from pathlib import Path

import click
import pytest

from edges.cli.kit import Cli
from wakeful.cli.main import COMMANDS, root

PAGE = (Path(__file__).parents[3] / "docs" / "cli.md").read_text(encoding="utf-8")
NAMES = [name for section in COMMANDS.values() for name in section]
COMMON = {"--home", "--output", "-o", "--help", "-h"}


def command_of(name: str) -> click.Command:
    found = root.get_command(click.Context(root), name)
    assert found is not None
    return found


def options_of(name: str) -> set[str]:
    found: set[str] = set()
    for parameter in command_of(name).params:
        if isinstance(parameter, click.Option):
            found |= {*parameter.opts, *parameter.secondary_opts}
    return found


def section_of(name: str) -> str:
    found = re.search(rf"^### `wakeful {name}\b.*?(?=^##|\Z)", PAGE, re.M | re.S)
    assert found, f"docs/cli.md has no section of {name}"
    return found[0]


@pytest.mark.parametrize("name", NAMES)
def test_every_command_and_option_is_documented(name: str) -> None:
    """The page has a section of the command with all of its options; those of `edit` are those of `add`."""
    text = section_of(name) + (section_of("add") if name == "edit" else "")
    told = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", text))
    assert options_of(name) - COMMON <= told


@pytest.mark.parametrize("name", NAMES)
def test_no_option_is_invented(name: str) -> None:
    """Every option in the tables of a section exists."""
    rows = re.findall(r"^\| (.*?) \|", section_of(name), re.M)
    told = {option for row in rows for option in re.findall(r"`(--[a-z][a-z-]*)", row)}
    assert told <= options_of(name)


def test_every_section_is_a_command() -> None:
    """Nothing is documented that is not there."""
    assert re.findall(r"^### `wakeful ([a-z]+)", PAGE, re.M) == NAMES


def test_common_options_and_exit_codes_are_documented() -> None:
    """What all commands share stands at the top, once."""
    head = PAGE.split("## The daemon")[0]
    assert COMMON | {"--version"} <= set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", head))
    assert re.findall(r"^\| (\d) \|", head, re.M) == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize("name", NAMES)
def test_help_of_every_command(name: str, alone: Cli) -> None:
    """`--help` works, begins like the line of the list, and stays within 80 columns; every option says what it is."""
    said = alone.ask(name, "--help")
    assert (said.code, said.err) == (0, "")
    assert all(len(line) <= 80 for line in said.out.splitlines())
    module, words = next(section[name] for section in COMMANDS.values() if name in section)
    assert module and said.out
    assert " ".join(said.out.split()).split(name, 1)[1].find(words.rstrip(".").split(",")[0].split(";")[0]) >= 0
    undescribed = [p.opts for p in command_of(name).params if isinstance(p, click.Option) and not p.help]
    assert not undescribed
