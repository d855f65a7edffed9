"""The page on the Python API names everything that is public, and nothing else."""

import inspect
import re
from pathlib import Path
from typing import get_type_hints

import wakeful
import wakeful.testing
from docs.blocks import ROOT, prose
from wakeful import Wakeful
from wakeful.app.options import Options
from wakeful.sync import Wakeful as BlockingWakeful

PAGE = ROOT / "docs" / "python.md"
LISTED = prose(PAGE).partition("## All names")[2]


def named() -> set[str]:
    """What stands as code in the tables and sentences of the list: single names, also before a parenthesis."""
    return set(re.findall(r"`(?:wakeful\.testing\.)?([A-Za-z_]\w*)(?:\([^`]*\))?`", LISTED))


def methods() -> set[str]:
    return {name for name in dir(Wakeful) if not name.startswith("_")}


def test_every_public_name_is_on_the_page() -> None:
    """Of the package, of what tests use, and every method of the app."""
    public = {*wakeful.__all__, *wakeful.testing.__all__, *methods()}
    assert public - named() == set()


def test_the_list_names_nothing_that_is_not_there() -> None:
    """A method that was renamed shows here; keywords of the constructor may be named."""
    keywords = {*inspect.signature(Wakeful.__init__).parameters, *get_type_hints(Options)}
    # What views and others are made of, or stands for a value.
    others = {"call", "command", "http", "prompt", "event", "errors"}
    assert named() - {*wakeful.__all__, *wakeful.testing.__all__, *methods()} - keywords - others == set()


def test_the_blocking_app_has_every_coroutine_as_a_plain_method(tmp_path: Path) -> None:
    """So the page holds for both."""
    app = BlockingWakeful(tmp_path / "wakeful.db")
    try:
        waiting = {name for name in methods() if inspect.iscoroutinefunction(getattr(Wakeful, name))}
        assert {"add", "run_now", "why", "start"} <= waiting
        assert {name for name in waiting if not callable(getattr(app, name))} == set()
        assert {name for name in waiting if inspect.iscoroutinefunction(getattr(app, name))} == set()
    finally:
        app.stop()
