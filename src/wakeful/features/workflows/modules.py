"""Loads modules that contain workflows, from Python's search path and then from the home folder.

A module may do anything while it is imported, even exit. One that cannot be loaded becomes a `Fault` and affects
nothing else (L9).
"""

import importlib
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from wakeful.features.workflows.python import Workflow
from wakeful.integrations.system.text import last_line, one_line

TRY_TIMEOUT: Final = 120.0
# The same search path as a daemon: with -c Python would search the current folder first.
_TRY: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from wakeful.features.workflows.modules import load_all; "
    "print(json.dumps(load_all(json.loads(sys.argv[2]), None).faults))"
)


class Fault(NamedTuple):
    """A module that could not be loaded."""

    module: str
    error: str


class Loaded(NamedTuple):
    """The result of loading modules."""

    workflows: Sequence[Workflow]
    faults: Sequence[Fault]


def load_all(modules: Sequence[str], folder: Path | None) -> Loaded:
    """Import these modules, from the folder if they are not found elsewhere."""
    if folder is not None and str(folder) not in sys.path:
        sys.path.append(str(folder))
    workflows: list[Workflow] = []
    faults: list[Fault] = []
    for module in modules:
        loaded = _load(module)
        if isinstance(loaded, Fault):
            faults.append(loaded)
        else:
            workflows += loaded
    return Loaded(workflows, faults)


def try_out(modules: Sequence[str], folder: Path) -> Sequence[Fault]:
    """The faults a daemon would find: tried in a separate process."""
    if not modules:
        return ()
    path = [entry for entry in sys.path if entry] + [str(folder)]
    argv = [sys.executable, "-c", _TRY, json.dumps(path), json.dumps(list(modules))]
    try:
        done = subprocess.run(  # noqa: S603 - this very Python, and names that the settings have checked
            argv, capture_output=True, text=True, timeout=TRY_TIMEOUT, check=False, stdin=subprocess.DEVNULL
        )
        return [Fault(*fault) for fault in json.loads(last_line(done.stdout))]
    except subprocess.TimeoutExpired:
        return [Fault(modules[0], f"importing takes longer than {TRY_TIMEOUT:g} s")]
    except (ValueError, OSError) as error:
        return [Fault(modules[0], f"importing ended the process: {last_line(done.stderr) or error}")]


def _load(module: str) -> list[Workflow] | Fault:
    try:
        workflows = [value for value in vars(importlib.import_module(module)).values() if isinstance(value, Workflow)]
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return Fault(module, one_line(f"{type(error).__name__}: {error}"))
    return workflows or Fault(module, "it contains no workflow; create one with Workflow(name) at its top level")
