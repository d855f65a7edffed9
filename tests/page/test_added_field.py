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
        '    timezone: str = setting(ZONE, "time zone of `times`", "local")',
        '    colour: str | None = setting(_WORDS, "the colour of its gauge", None)\n',
    ),
    (
        "src/wakeful/config/tables.py",
        '    days: int = setting(count(1, 365), "how long log files are kept", 7)',
        '    colour: Literal["red", "green"] = setting(CHOICE, "the colour of errors", "red")\n',
    ),
    (
        "src/wakeful/ports/event_data.py",
        '    instants: Annotated[int, Named("count")] = 1',
        "    priority: int\n",  # the row of a run has it
    ),
    (
        "src/wakeful/api/definition_files.py",
        "\n\n@dataclass(slots=True)\nclass _Changes:",
        '    colour: Annotated[str, "the colour of the change"] = field(default_factory=lambda: "red")\n',
    ),
)


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the source with a field more in a schedule, a slot, the settings, an event and a response."""
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
    (home / "wakeful.toml").write_text('[log]\ncolour = "green"\n')
    command = [sys.executable, "-m", "wakeful.server.daemon", str(home), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ(changed)) as process:
        try:
            assert process.stdout is not None
            yield Daemon(process, process.stdout.readline().strip().rpartition(" ")[2], home)  # type: ignore[arg-type]
        finally:
            process.kill()


def environ(changed: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{changed / 'src'}{os.pathsep}{changed}"}


def wakeful(changed: Path, *arguments: str, code: int = 0) -> str:
    program = "from wakeful.cli.main import main; main()"
    command = [sys.executable, "-c", program, *arguments]
    ended = subprocess.run(command, env=environ(changed), capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert ended.returncode == code, ended.stderr
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


def test_a_setting_is_read_and_refused(changed: Path, running: Daemon, tmp_path: Path) -> None:
    """With its line and the words that are allowed; it is in `GET /api/config`, and in the file that `init` writes."""
    config = ask(running, "GET", "/api/config")
    assert (config["settings"]["log"]["colour"], config["sources"]["log.colour"]["line"]) == ("green", 2)
    file = tmp_path / "wakeful.toml"
    file.write_text('[log]\ncolour = "blue"\n[alerts]\ncolour = "red"\n')
    checked = json.loads(wakeful(changed, "check", str(file), "-o", "json", code=1))
    assert [(one["line"], one["field"], one["message"]) for one in checked["errors"]] == [
        (2, "log.colour", "'blue' is not one of red, green; write one of them"),
        (4, "alerts.colour", "unknown key here; it belongs to [log]"),
    ]
    wakeful(changed, "init", "--home", str(tmp_path / "new"))
    written = (tmp_path / "new" / "wakeful.toml").read_text(encoding="utf-8")
    assert '# colour = "red"                      # the colour of errors' in written


def test_a_field_of_an_event_is_sent(running: Daemon) -> None:
    """With the other fields of its run."""
    ask(running, "PUT", "/api/schedule/watched", JOB)
    with urllib.request.urlopen(f"{running.address}/api/stream?streams=runs", timeout=PATIENCE) as stream:
        ask(running, "POST", "/api/schedule/watched/run")
        told = (json.loads(line.removeprefix(b"data: ")) for line in stream if line.startswith(b"data: "))
        settled = next(event for event in told if event["what"] == "settled")
    assert settled["slug"] == "watched" and isinstance(settled["priority"], int)


def test_a_field_of_a_response_is_returned(running: Daemon) -> None:
    """With its description in OpenAPI; it is always there."""
    assert ask(running, "POST", "/api/apply", {"files": {}})["colour"] == "red"
    applied = ask(running, "GET", "/api/openapi.json")["components"]["schemas"]["Applied"]
    assert applied["properties"]["colour"]["description"] == "the colour of the change"
    assert "colour" in applied["required"]


def test_it_is_in_the_tables_of_the_docs(changed: Path) -> None:
    """In those of definitions, settings and events; until they are made again, a test fails."""
    pages = [changed / "docs" / name for name in ("definition.md", "settings.md", "events.md")]
    assert not any(name in page.read_text(encoding="utf-8") for page in pages for name in ("`colour`", "`priority`,"))
    subprocess.run(
        [sys.executable, "-m", "tools.field_tables"], cwd=changed, env=environ(changed), timeout=PATIENCE, check=True
    )
    definition, settings, events = (page.read_text(encoding="utf-8") for page in pages)
    assert "| `colour` | name | unset | the colour of its mark |" in definition
    assert events.count("`nextAttemptAt`, `priority`; if it applies, `count`") == 1
    assert '| `colour` | `red` or `green` | `"red"` | the colour of errors |' in settings
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
