"""The page of field notes: every row has a test, and every test it names is there."""

import ast
import re
from pathlib import Path

from docs.blocks import ROOT

PAGE = ROOT / "docs" / "field-notes.md"
ROWS = 53


def functions(path: Path) -> set[str]:
    """The tests of a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_every_row_names_tests_that_exist() -> None:
    """A test that is renamed or removed leaves its row unguarded."""
    rows = re.findall(r"^\| (\d+) \| (.+) \| (.+) \|$", PAGE.read_text(encoding="utf-8"), re.M)
    assert [int(number) for number, _, _ in rows] == list(range(1, ROWS + 1))
    for number, _, guards in rows:
        named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", guards)
        assert named, f"row {number} names no test"
        for path, name in named:
            assert (ROOT / path).exists(), f"row {number}: {path} is not there"
            assert name in functions(ROOT / path), f"row {number}: {path} has no {name}"
