"""The package of examples/plugin, installed with pip, on a real daemon: one plugin of each kind."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from plugins.kit import ROOT, Running, daemon_with, install, until

SETTINGS = """
plugins = ["wakeful-example"]

[agents.loud]
adapter = "shout"
ending = "?!"

[channels.book]
type = "logbook"
file = "{file}"

[slots.main]
provider = "fixed"
percentage = 40
"""


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("packages")
    install(ROOT / "examples" / "plugin", target)
    return target


@pytest.fixture(scope="module")
def running(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    home = tmp_path_factory.mktemp("home")
    with daemon_with(packages, home, SETTINGS.format(file=home / "book.txt")) as daemon:
        yield daemon


def test_its_agent_replies_and_its_channel_delivers(running: Running) -> None:
    """With what the turn used, and the settings of the plugin."""
    run = running.run("ask", prompt="what is new", agent="loud", deliver={"channel": "book"})
    assert (run["outcome"], run["reply"]) == ("succeeded", "[SCHEDULER:ASK] WHAT IS NEW?!")
    assert run["usage"]["total"] == 2 * len("[scheduler:ask] what is new")
    book = running.home / "book.txt"
    assert until(lambda: book.exists() and book.read_text()) == "ask: [SCHEDULER:ASK] WHAT IS NEW?!\n"


def test_its_provider_is_polled(running: Running) -> None:
    found = until(lambda: [one for one in running.ask("GET", "/api/slots")["slots"] if one["percentage"] is not None])
    assert [(one["name"], one["percentage"]) for one in found] == [("main", 40)]


def test_its_importer_reads(running: Running, tmp_path: Path) -> None:
    """From the command line, which does not know the kind."""
    todo = tmp_path / "todo.txt"
    todo.write_text("09:00 true report\n\n18:30 true back up\n")
    done = running.cli("import", "todo", str(todo), "--apply")
    assert done.returncode == 0, done.stderr
    slugs = {one["slug"] for one in running.ask("GET", "/api/schedule")["schedules"]}
    assert {"true-report", "true-back-up"} <= slugs
    other = running.cli("import", "tood", str(todo))
    assert other.returncode != 0 and "todo" in other.stderr


def test_nothing_is_found_about_them(running: Running) -> None:
    assert running.troubles() == []
    assert "plugins" not in running.cli("doctor").stdout


def test_a_package_that_is_not_named_changes_nothing(packages: Path, tmp_path: Path) -> None:
    """It is installed, and neither imported nor known."""
    with daemon_with(packages, tmp_path / "home", "") as daemon:
        checked = tmp_path / "wakeful.toml"
        checked.write_text('[agents.loud]\nadapter = "shout"\n')
        done = daemon.cli("check", str(checked))
        assert done.returncode == 1 and "'shout' is not one of" in done.stdout + done.stderr
        assert daemon.cli("import", "todo").returncode == 2


def test_the_settings_show_a_kind_and_hide_secrets(packages: Path, tmp_path: Path) -> None:
    settings = SETTINGS.format(file="book.txt") + '\n[agents.other]\nadapter = "shout"\napi_token = "hidden-value-1"\n'
    with daemon_with(packages, tmp_path / "home", settings) as daemon:
        shown = daemon.ask("GET", "/api/config")
        assert shown["settings"]["plugins"] == ["wakeful-example"]
        assert shown["settings"]["agents"]["loud"]["settings"] == {"ending": "?!"}
        assert "hidden-value-1" not in str(shown)
        agents = {one["name"]: one["adapter"] for one in daemon.ask("GET", "/api/agents")["agents"]}
        assert agents["loud"] == "shout"
