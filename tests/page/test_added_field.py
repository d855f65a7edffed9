"""A field is described once: a copy of the source with one more line shows it everywhere."""

import json
import os
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, expect

from access import write_token
from edges.http.kit import Daemon
from page.kit import ask, window
from patience import PATIENCE

ROOT: Final = Path(__file__).parents[2]
JOB: Final = {"schedule": {"type": "manual"}, "command": {"argv": ["true"]}}
# The file, the line before which the new one is put, and the new one.
ADDED: Final = (
    (
        "src/wakeful/core/schedule/definition.py",
        "    stagger: Annotated[",
        '    colour: Annotated[str | None, Field(NAME, "the colour of its mark", label="Colour")] = None\n',
    ),
    (
        "src/wakeful/config/slots.py",
        '    timezone: Annotated[str, kinds.zone(local=True)] = setting("local", says="time zone of `times`")',
        '    colour: Annotated[str | None, kinds.text()] = setting(None, says="the colour of its gauge")\n',
    ),
)


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the source with a field more in a schedule, and one more in a slot."""
    copy = tmp_path_factory.mktemp("changed")
    for folder in ("src", "tools", "docs"):  # with its bytecode: only what is changed is compiled again
        shutil.copytree(ROOT / folder, copy / folder)
    for name, before, line in ADDED:
        file = copy / name
        text = file.read_text(encoding="utf-8")
        assert text.count(before) == 1
        file.write_text(text.replace(before, line + before), encoding="utf-8")
    return copy


@pytest.fixture(scope="module")
def running(changed: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """Its daemon."""
    home = tmp_path_factory.mktemp("home")
    write_token(home)
    command = [sys.executable, "-m", "wakeful.server.daemon", str(home), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ(changed)) as process:
        try:
            assert process.stdout is not None
            yield Daemon(process, process.stdout.readline().strip().rpartition(" ")[2], home)  # type: ignore[arg-type]
        finally:
            process.kill()


def environ(changed: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{changed / 'src'}{os.pathsep}{changed}"}


def wakeful(changed: Path, *arguments: str) -> str:
    program = "from wakeful.cli.main import main; main()"
    command = [sys.executable, "-c", program, *arguments]
    ended = subprocess.run(command, env=environ(changed), capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_it_is_read_and_written(running: Daemon) -> None:
    """In JSON, and kept in the store; a wrong value is refused like that of any other field."""
    ask(running, "PUT", "/api/schedule/red", {**JOB, "colour": "red"})
    ask(running, "PUT", "/api/schedule/plain", JOB)
    assert ask(running, "GET", "/api/schedule/red")["colour"] == "red"
    assert ask(running, "GET", "/api/schedule/plain")["colour"] is None
    with pytest.raises(urllib.error.HTTPError) as refused:
        send(running, "PUT", "/api/schedule/wrong", {**JOB, "colour": " ", "lane": " "})
    told = json.loads(refused.value.read())["errors"]
    assert {one["field"]: one["message"] for one in told} == dict.fromkeys(
        ("colour", "lane"), "is empty; write a name, or leave it out"
    )


def test_it_is_in_the_openapi_description(running: Daemon) -> None:
    """Of what is written, and of what is returned."""
    schemas = ask(running, "GET", "/api/openapi.json")["components"]["schemas"]
    for name in ("Definition", "Schedule"):
        assert schemas[name]["properties"]["colour"]["description"] == "the colour of its mark"
    for name in ("SlotDefinition", "Slot"):
        assert schemas[name]["properties"]["colour"]["description"] == "the colour of its gauge"


def test_it_can_be_set_on_the_command_line(changed: Path, running: Daemon) -> None:
    """As text, because that is its type; a field of a slot is an option."""
    options = ("--manual", "--command", "true", "--set", "colour=5", "--home", str(running.home), "-o", "json")
    assert json.loads(wakeful(changed, "add", "by-command", *options))["colour"] == "5"
    assert "The colour of its gauge." in wakeful(changed, "slots", "add", "--help")


def test_it_is_in_the_tables_of_the_docs(changed: Path) -> None:
    """In that of definitions, and in the reference of the settings; until they are made again, a test fails."""
    pages = [changed / "docs" / name for name in ("definition.md", "settings.md")]
    assert not any("`colour`" in page.read_text(encoding="utf-8") for page in pages)
    subprocess.run(
        [sys.executable, "-m", "tools.field_tables"], cwd=changed, env=environ(changed), timeout=PATIENCE, check=True
    )
    definition, settings = (page.read_text(encoding="utf-8") for page in pages)
    assert "| `colour` | name | unset | the colour of its mark |" in definition
    assert settings.count("| `colour` | text | unset | the colour of its gauge |") == 3  # a table for each provider


def test_it_is_in_the_description_of_the_form(running: Daemon) -> None:
    """From which the page draws each field: with its label and its help text."""
    options = {option["name"]: option for option in ask(running, "GET", "/api/forms/schedule")["options"]}
    assert (options["colour"]["label"], options["colour"]["hint"]) == ("Colour", "the colour of its mark")
    for provider in ask(running, "GET", "/api/forms/slot")["providers"]:
        assert "colour" in [one["name"] for one in provider["fields"]]


@pytest.mark.torture
def test_it_is_in_the_form(browser: Browser, running: Daemon) -> None:
    """With its label and its help text; what is typed there is saved."""
    with window(browser, running) as one:
        one.go("new")
        one.page.get_by_label("Name", exact=True).fill("by-form")
        one.page.get_by_role("button", name="Only on request").click()
        one.page.get_by_role("button", name="Run a command").click()
        one.page.get_by_label("Command", exact=True).fill("true")
        one.page.get_by_text("More options").click()
        colour = one.page.get_by_label("Colour")
        expect(one.page.locator(".field").filter(has=colour)).to_contain_text("the colour of its mark")
        colour.fill("green")
        one.page.get_by_role("button", name="Create").click()
        expect(one.page.get_by_role("heading", name="by-form", exact=True)).to_be_visible()
    assert ask(running, "GET", "/api/schedule/by-form")["colour"] == "green"


def send(running: Daemon, method: str, path: str, body: Any) -> None:
    request = urllib.request.Request(running.address + path, json.dumps(body).encode(), method=method)
    urllib.request.urlopen(request, timeout=PATIENCE).close()
