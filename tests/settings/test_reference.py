"""The page about the settings tells what the models are."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from tools.field_tables import PAGES, ROOT, put_into, settings_tables

from settings.kit import described, loaded
from wakeful.config.model import ENTRIES, SETTINGS, plain_tables

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_up_to_date(name: str) -> None:
    """If not: python -m tools.field_tables"""
    page = (ROOT / name).read_text(encoding="utf-8")
    assert put_into(page, PAGES[name]()) == page


def test_every_setting_is_in_it_with_its_meaning() -> None:
    """Four filled cells a line."""
    rows = [line for line in settings_tables().splitlines() if line.startswith("| `")]
    cells = [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows]
    assert all(len(row) == 4 and all(row) for row in cells)
    entries = dict.fromkeys(table for named in ENTRIES.values() for table in named.tables.values())
    plain = [table for _, table in plain_tables()]
    tables = [*entries, *plain, described(("heartbeat", "active_hours"), {})]
    alone = [field for field in SETTINGS if not field.kind.inner and field.name not in ENTRIES]
    assert len(rows) == sum(len(table.names) for table in tables) + len(alone)


def test_the_example_of_the_page_can_be_used(tmp_path: Path) -> None:
    """As it stands there."""
    found = re.search(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    tomllib.loads(found[1])
    assert loaded(tmp_path, found[1].replace("MODEL_KEY", "GLM_KEY")).settings.heartbeat.enabled
