"""Labels: on which nodes a schedule may run.

Theory of operation
-------------------
A node has labels (`[node] labels`), and a schedule may name some (`runOn`). A node may begin a run of such a schedule
only if it has at least one of them. What is stored with alarms and runs is the *queue*: the labels, sorted and joined
with spaces. A node looks only into the queues that contain one of its labels, so it never touches the others.
"""

import re
from collections.abc import Iterable
from typing import Any, Final, TypeAlias

from wakeful.core.description import Kind
from wakeful.core.fields import Fields, shown
from wakeful.core.kinds import listed

LABEL_PATTERN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,63}", re.ASCII)
LABELS_MAX: Final = 20
LABEL_CURE: Final = "write 1 to 64 letters, digits or . _ - : / beginning with a letter or digit, like gpu"

RunOn: TypeAlias = str | tuple[str, ...] | None
"""A label, or several of which a node needs one, as written."""


def is_label(text: object) -> bool:
    """Whether the text can be a label."""
    return isinstance(text, str) and LABEL_PATTERN.fullmatch(text) is not None


def queue_of(run_on: RunOn) -> str | None:
    """The queue of these labels; None: every node may run it."""
    if run_on is None:
        return None
    return joined((run_on,) if isinstance(run_on, str) else run_on)


def joined(labels: Iterable[str]) -> str:
    """Labels in their stored form."""
    return " ".join(sorted(set(labels)))


def may_take(queue: str | None, labels: frozenset[str]) -> bool:
    """Whether a node with these labels may take runs from the queue."""
    return queue is None or not labels.isdisjoint(queue.split())


def named(queue: str) -> str:
    """The labels of a queue, for a sentence: `the label gpu`, `one of the labels gpu, tpu`."""
    labels = queue.split()
    return f"the label {labels[0]}" if len(labels) == 1 else f"one of the labels {', '.join(labels)}"


def _read(fields: Fields, name: str) -> RunOn:
    given = fields.raw(name)
    if is_label(given):
        return str(given)
    if not isinstance(given, list | tuple) or not 1 <= len(given) <= LABELS_MAX:
        fields.fail(name, f'{shown(given)} is not a label or a list of at most {LABELS_MAX} labels, like ["gpu", "eu"]')
        return None
    for number, label in enumerate(given):
        if not is_label(label):
            fields.fail(f"{name}[{number}]", f"{shown(label)} is not a label; {LABEL_CURE}")
    return tuple(dict.fromkeys(map(str, given)))


def _write(run_on: str | tuple[str, ...]) -> Any:
    return run_on if isinstance(run_on, str) else list(run_on)


_LABEL: Final = {"type": "string", "pattern": f"^{LABEL_PATTERN.pattern}$", "examples": ["gpu"]}
RUN_ON: Final = Kind(
    "label, or a list of labels",
    _read,
    {"anyOf": [_LABEL, listed(_LABEL, least=1, most=LABELS_MAX)]},
    _write,
    control="label",
    cure=LABEL_CURE,
)
