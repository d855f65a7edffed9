"""The page about the settings tells what the models are."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from tools.field_tables import PAGES, ROOT, put_into, settings_tables

from settings.kit import loaded
from wakeful.config.messages import table_at
from wakeful.config.model import ENTRIES, Settings

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
    tables = list(dict.fromkeys(model for entries in ENTRIES.values() for model in entries.models.values()))
    plain = [table_at((name,), {}) for name in Settings.model_fields if name not in ENTRIES]
    active_hours = table_at(("heartbeat", "active_hours"), {})
    assert len(rows) == sum(len(table.model_fields) for table in [*tables, *plain, active_hours] if table)


def test_the_example_of_the_page_can_be_used(tmp_path: Path) -> None:
    """As it stands there."""
    found = re.search(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    tomllib.loads(found[1])
    assert loaded(tmp_path, found[1].replace("MODEL_KEY", "GLM_KEY")).settings.heartbeat.enabled
