"""An operation is added by one entry: the program of `added.py` has one more, and asks for it in every way."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from patience import PATIENCE

TESTS = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def added(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What came back."""
    folder = tmp_path_factory.mktemp("added")
    command = [sys.executable, TESTS / "api" / "added.py", folder]
    environ = {**os.environ, "PYTHONPATH": str(TESTS)}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_over_rest_its_role_and_its_owner_are_checked(added: Any) -> None:
    """It needs `operate`, and agents reach only what they own."""
    assert added["rest"] == {
        "admin people": 200, "admin coder.own": 200,
        "operate people": 200, "operate coder.own": 200,
        "read people": 403, "read coder.own": 403,
        "owner people": 404, "owner own": 200,
        "other people": 404, "other own": 404,
    }  # fmt: skip
    assert added["body"] == {"slug": "coder.own", "seenCopies": 2}


def test_wrong_arguments_are_refused_by_name(added: Any) -> None:
    """The limits are those of its annotations."""
    assert added["wrong"] == [
        "copies: '4': input should be less than or equal to 3",
        "copys: unknown field; did you mean 'copies'?",
        "dry: unknown parameter; this route has none",
    ]


def test_openapi_describes_it(added: Any) -> None:
    """Its words, its parameters, its body, and what it returns."""
    told = added["openapi"]
    assert (told["tags"], told["summary"], told["description"]) == (
        ["schedules"], "Count copies", "Counts copies of one schedule."
    )  # fmt: skip
    assert [(one["name"], one["in"], one["required"]) for one in told["parameters"]] == [("slug", "path", True)]
    assert set(told["responses"]) >= {"200", "400", "403", "404"}
    assert told["responses"]["200"]["content"]["application/json"]["schema"]["$ref"].endswith("/Copies")
    assert json.dumps(told["requestBody"]).count("/Counting") == 1
    assert set(added["schemas"]["Copies"]["properties"]) == {"slug", "seenCopies"}
    assert added["schemas"]["Copies"]["properties"]["seenCopies"]["description"] == "as many as were asked for"
    assert set(added["schemas"]["Counting"]["properties"]) == {"copies"}


def test_python_calls_it_with_the_same_checks(added: Any) -> None:
    """As the program itself, as a role, and as an agent."""
    assert added["python"] == {
        "program": 3,
        "read": "Refused: the role 'read' does not permit POST /api/schedule/{slug}/count",
        "other": "NotFound: you have no schedule 'writer.own'; list_schedules shows those you have",
        "owner": "coder.own",
    }
    assert added["sync"] == {"slug": "people", "inherited": "people"}


def test_an_agent_calls_it_as_a_tool(added: Any) -> None:
    """By name, with the schema that the annotations make."""
    assert added["tool"]["coder"] == added["tool over REST"] == {"slug": "coder.own", "seenCopies": 2}
    assert added["tool"]["writer"] == {
        "error": "you have no schedule 'writer.own'; list_schedules shows those you have"
    }
    assert added["tool schema"] == {
        "type": "object",
        "properties": {
            "slug": {"type": "string"},
            "copies": {"type": "integer", "minimum": 1, "maximum": 3, "description": "how many"},
        },
        "required": ["slug"],
        "additionalProperties": False,
    }
