"""`letters.py`, in the demo's home: the handlers of its workflow, with JSON requests on stdin and responses on stdout.

`fetch` produces letters, `sort` forwards the urgent ones, `answer` writes one reply at a time: its side effect is a
line in a file.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

SUBJECTS = ("the boiler hums", "lunch?", "the server is on fire", "a poem", "invoice 17", "the cat is back")
URGENT = ("the boiler hums", "the server is on fire")


def main(home: Path) -> int:
    request = json.load(sys.stdin)
    answer = PHASES[request["handler"], request["phase"]](request, home)
    json.dump(answer, sys.stdout)
    return 0


def fetch(request: dict[str, Any], _home: Path) -> dict[str, Any]:
    """Produce the next two letters."""
    known = request["state"] or 0
    found = [
        {"topic": "letters", "id": f"letter-{number}", "payload": {"subject": SUBJECTS[number % len(SUBJECTS)]}}
        for number in range(known, known + 2)
    ]
    return {"messages": found, "state": known + 2}


def take(request: dict[str, Any], most: int) -> dict[str, Any]:
    """Reserve the oldest pending letters."""
    taken = [(topic, letter) for topic, waiting in request["messages"].items() for letter in waiting][:most]
    topics = dict.fromkeys(topic for topic, _ in taken)
    return {
        "reservations": [
            {"topic": topic, "ids": [letter["id"] for of, letter in taken if of == topic]} for topic in topics
        ],
        "data": [{"id": letter["id"], "subject": letter["payload"]["subject"]} for _, letter in taken],
    }


def pass_on(request: dict[str, Any], _home: Path) -> dict[str, Any]:
    """Publish every urgent letter again, for the consumer that answers it."""
    urgent = [letter for letter in request["prepared"]["data"] or [] if letter["subject"] in URGENT]
    return {"messages": [{"topic": "urgent", "id": letter["id"], "payload": letter} for letter in urgent]}


def write(request: dict[str, Any], home: Path) -> dict[str, Any]:
    """The side effect: one line."""
    (letter,) = request["prepared"]["data"]
    with (home / "answers.txt").open("a", encoding="utf-8") as answers:
        answers.write(f"{letter['id']}: thank you for writing about {letter['subject']!r}\n")
    return {"result": letter["id"]}


PHASES: dict[tuple[str, str], Callable[[dict[str, Any], Path], dict[str, Any]]] = {
    ("fetch", "produce"): fetch,
    ("sort", "prepare"): lambda request, _home: take(request, 20),
    ("sort", "next"): pass_on,
    ("answer", "prepare"): lambda request, _home: take(request, 1),
    ("answer", "mutate"): write,
    ("answer", "next"): lambda _request, _home: {},
}

if __name__ == "__main__":
    sys.exit(main(Path.cwd()))
