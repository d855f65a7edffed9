"""The reference of all settings, generated from the models: `python -m wakeful.config.reference docs/settings.md`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from wakeful.config.messages import choices_of, kind_of, table_at
from wakeful.config.model import ENTRIES, ActiveHoursTable, Settings
from wakeful.config.table import NamedTables, Table

BEGIN: Final = "<!-- made from the models: python -m wakeful.config.reference docs/settings.md -->"
END: Final = "<!-- end of what is made from the models -->"


def render() -> str:
    """All settings by table, in the order of the file."""
    return "\n".join(line for section in Settings.model_fields for line in _section(section))


def put_into(page: str) -> str:
    """The page with its generated tables replaced by the current ones."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{render()}\n{END}{after}"


def _section(section: str) -> Iterator[str]:
    if entries := ENTRIES.get(section):
        yield from _entries(section, entries)
    elif table := table_at((section,), {}):
        yield from _table(f"`[{section}]`", table)
        if section == "heartbeat":
            yield from _table("`heartbeat.active_hours`", ActiveHoursTable)


def _entries(section: str, entries: NamedTables) -> Iterator[str]:
    for table in dict.fromkeys(entries.models.values()):
        tags = [f'`{entries.by} = "{tag}"`' for tag, one in entries.models.items() if one is table]
        kind = f" with {' or '.join(tags)}" if entries.by else ""
        yield from _table(f"`[{section}.NAME]`{kind}", table)


def _table(title: str, table: type[Table]) -> Iterator[str]:
    yield from (f"### {title}", "", (table.__doc__ or "").strip(), "")
    yield from ("| name | type | default | meaning |", "|---|---|---|---|")
    for name, field in table.model_fields.items():
        default = "required" if field.is_required() else _written(field.default)
        cells = (f"`{name}`", _type(table, name), default, field.description or "")
        yield f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"
    yield ""


def _type(table: type[Table], name: str) -> str:
    kind = kind_of(table, name)
    if kind is not None:
        return kind.words
    return " or ".join(f"`{word}`" for word in choices_of(table, name)) or "table"


def _written(default: Any) -> str:
    match default:
        case None:
            return "unset"
        case dict():
            return "`{}`"
        case tuple():
            return f"`{json.dumps(list(default))}`"
        case _:
            return f"`{json.dumps(default, ensure_ascii=False)}`"


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        page = Path(argument)
        page.write_text(put_into(page.read_text(encoding="utf-8")), encoding="utf-8")
