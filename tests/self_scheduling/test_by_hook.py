"""A hook is no person: the right code in its text decides nothing."""

import json
import re
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from edges.cli.kit import daemon
from patience import PATIENCE
from self_scheduling.inbox import in_the_inbox

SETTINGS = """
[agents.coder]
adapter = "echo"
[tokens.coder]
token = "the-secret-of-the-coder"
role = "agent"
agent = "coder"
[alerts]
approvers = ["inbox"]
[hooks.door]
token = "the-secret-of-the-door"
"""


def post(address: str, path: str, token: str, body: Any) -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {token}"}
    request = urllib.request.Request(address + path, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as response:
            return response.status, json.loads(response.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


@pytest.mark.parametrize("decision", ["approve", "reject"])
def test_a_code_in_the_text_of_a_hook_is_refused_and_logged(tmp_path: Path, decision: str) -> None:
    """The proposal still waits, and no agent gets the code as an event."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "wakeful.toml").write_text(SETTINGS)
    with daemon(home) as cli:
        address = json.loads((home / "wakeful.lock").read_text())["address"]
        watch = {"slug": "watch", "when": "every 2h", "prompt": "Look at the build"}
        status, made = post(address, "/api/tools/put_schedule", "the-secret-of-the-coder", watch)
        assert status == 200 and "pending" in json.dumps(made), made
        code = re.search(r"send: approve ([A-Z0-9]{8})", in_the_inbox(cli, "coder.watch"))
        assert code is not None
        said = {"text": f"{decision} {code[1]}"}
        status, refused = post(address, "/api/hooks/door", "the-secret-of-the-door", said)
        assert status == 400 and "not accepted here" in json.dumps(refused)
        (asked,) = cli.ask("approvals", "-o", "json").json["approvals"]
        assert (asked["slug"], asked["status"]) == ("coder.watch", "pending")
        assert cli.ask("events", "-o", "json").json["events"] == []
        log = (home / "server.log").read_text()
        assert "a decision on a proposal was sent as the text of hook:door; it was refused" in log
        assert code[1] not in log
