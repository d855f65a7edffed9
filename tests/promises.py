"""Which tests guard a promise: those marked `promise`, and those that a page of guarantees names as its guard.

`pytest -m promise` runs them all.
"""

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = ("laws.md", "field-notes.md", "security.md")
NAMED = re.compile(r"`(tests/[\w/]+\.py)(?:::(test_\w+))?`")


@cache
def named() -> frozenset[tuple[str, str]]:
    """Path and function of each test that a page names; the function is empty if it names the whole file."""
    pages = ((ROOT / "docs" / page).read_text(encoding="utf-8") for page in PAGES)
    return frozenset(found for page in pages for found in NAMED.findall(page))


def mark(items: Iterable[pytest.Item]) -> None:
    """Mark the tests that the pages name."""
    for item in items:
        path = item.path.relative_to(ROOT).as_posix()
        if not named().isdisjoint({(path, ""), (path, getattr(item, "originalname", ""))}):
            item.add_marker(pytest.mark.promise)
