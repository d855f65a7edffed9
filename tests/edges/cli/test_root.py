"""The root of the command line: help, version, what is not there, completion."""

import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint, version
from pathlib import Path

import pytest

from edges.cli.kit import Cli
from patience import PATIENCE
from wakeful.cli.main import COMMANDS, main


def test_help_lists_every_command(alone: Cli) -> None:
    """With a line each, within 80 columns."""
    said = alone.run("--help")
    assert (said.code, said.err) == (0, "")
    for section, commands in COMMANDS.items():
        assert f"{section}:" in said.out
        for name, (_, words) in commands.items():
            assert name in said.out
            assert words in said.out
    assert all(len(line) <= 80 for line in said.out.splitlines())


def test_help_imports_no_command() -> None:
    """It must be quick: no command, no client and no table is read for it."""
    code = (
        "import sys\nfrom wakeful.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    print(sorted(sys.modules))\n"
    )
    ended = subprocess.run([sys.executable, "-c", code, "--help"], capture_output=True, text=True, check=True)
    loaded = ended.stdout.splitlines()[-1]
    assert "'wakeful.cli.main'" in loaded
    for heavy in ("'rich'", "'wakeful.cli.client'", "'wakeful.cli.tables'", "'wakeful.cli.schedules'"):
        assert heavy not in loaded


def test_asking_imports_no_engine(tmp_path: Path) -> None:
    """A command that asks the daemon is a client: nothing of what the daemon is made of is read for it."""
    code = (
        "import sys\nfrom wakeful.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    print(sorted(sys.modules))\n"
    )
    asked = [sys.executable, "-c", code, "--home", str(tmp_path), "next"]
    ended = subprocess.run(asked, capture_output=True, text=True, check=True)
    loaded = ended.stdout.splitlines()[-1]
    assert "'wakeful.cli.client'" in loaded
    for heavy in ("'wakeful.ports", "'wakeful.engine", "'wakeful.stores", "'wakeful.features", "'wakeful.app"):
        assert heavy not in loaded


def test_the_console_script() -> None:
    """What is installed as `wakeful` is this command line."""
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    script = EntryPoint("wakeful", project["scripts"]["wakeful"], "console_scripts")
    assert script.load() is main


def test_version(alone: Cli) -> None:
    """The version of the package."""
    assert alone.ask("--version").out == f"wakeful {version('wakeful')}\n"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (("lss",), "there is no command 'lss'; did you mean 'ls'?"),
        (("frobnicate",), "there is no command 'frobnicate'; see wakeful --help"),
        (("ls", "--frob"), "No such option"),
        (("show",), "Missing argument 'SLUG'"),
        (("ls", "-o", "yaml"), "'yaml' is not one of 'text', 'json'"),
        (("runs", "--limit", "0"), "--limit"),
    ],
)
def test_what_is_not_there_is_a_matter_of_usage(alone: Cli, line: tuple[str, ...], words: str) -> None:
    """Exit code 2, what is wrong, and where help is."""
    said = alone.ask(*line)
    assert (said.code, said.out) == (2, "")
    assert words in said.err


def test_a_reader_that_goes_away_is_no_crash(alone: Cli) -> None:
    """`wakeful … | head` ends quietly."""
    child = alone.start("completion", "bash")
    assert child.stdout is not None and child.stderr is not None
    child.stdout.close()
    child.wait(PATIENCE)
    assert "Traceback" not in child.stderr.read()
    child.stderr.close()


@pytest.mark.parametrize(
    ("shell", "words"), [("bash", "complete -o"), ("zsh", "#compdef wakeful"), ("fish", "--command wakeful")]
)
def test_completion_scripts(alone: Cli, shell: str, words: str) -> None:
    """Each shell gets its own."""
    said = alone.run("completion", shell) if shell == "bash" else alone.ask("completion", shell)
    assert (said.code, said.err) == (0, "")
    assert words in said.out
    assert alone.ask("completion", shell, "-o", "json").json["shell"] == shell
