"""The tables of fields in the docs, made from the descriptions: `python -m tools.field_tables` writes them."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from wakeful.config.model import ENTRIES, SETTINGS
from wakeful.core.description import Field, Object
from wakeful.core.returned import returned
from wakeful.core.schedule.actions import OBJECTS
from wakeful.core.schedule.definition import OPTIONS, SCHEDULE
from wakeful.core.time.timing_json import TIMING_TYPES
from wakeful.core.workflow.definition import WORKFLOW
from wakeful.ports.event import EventStream
from wakeful.ports.events import STREAMS

ROOT: Final = Path(__file__).parents[1]
BEGIN: Final = "<!-- made by: python -m tools.field_tables -->"
END: Final = "<!-- end of what is made -->"


def definition_tables() -> str:
    """What users write in JSON: schedules and workflows."""
    actions = {described.name for described in OBJECTS.values()}
    parts: dict[str, Object[Any]] = {one.name: one for one in _inside(OPTIONS) if one.name not in actions}
    lines = [
        "## Schedule",
        "",
        "Exactly one of `prompt`, `command`, `http`, `call`, `dispatch` and `event` is required.",
        "",
    ]
    lines += [*_rows(SCHEDULE), "## Timings", "", "The `schedule` of a definition has one of these types.", ""]
    for name, one in TIMING_TYPES.items():
        if one.alias_of == "once":
            continue
        lines += _section(f'{one.fields.name}: `"type": "{name}"`', one.fields.only(without=("type",)))
    lines += ["## Actions", ""]
    for described in (inner for one in OBJECTS.values() for inner in (one, *_inside(one))):
        lines += _section(described.name, described)
    lines += ["## Parts of a schedule", ""]
    for described in parts.values():
        lines += _section(described.name, described)
    lines += ["## Workflow", "", *_rows(WORKFLOW)]
    for described in {one.name: one for one in _inside(WORKFLOW) if one.name not in _TIMINGS}.values():
        lines += _section(described.name, described)
    return "\n".join(lines)


def settings_tables() -> str:
    """All settings by table, in the order of the file."""
    return "\n".join(line for section in SETTINGS for line in _settings(section))


def event_tables() -> str:
    """All events by stream, with the fields of their data."""
    return "\n".join(line for stream in STREAMS.values() for line in _stream(stream))


def _stream(stream: EventStream) -> Iterator[str]:
    yield from (f"## `{stream.name}`", "")
    if stream.says:
        yield from (stream.says, "")
    yield from ("| what | means |", "|---|---|")
    for event in stream.kinds:
        yield f"| `{event.what}` | {event.says} |"
    yield ""
    for shape in dict.fromkeys(event.shape for event in stream.kinds):
        kinds = [f"`{event.what}`" for event in stream.kinds if event.shape is shape]
        named = "all" if len(kinds) == len(stream.kinds) else ", ".join(kinds)
        fields = list(returned(shape))
        always = ", ".join(f"`{field.name}`" for field in fields if field.is_required)
        others = ", ".join(f"`{field.name}`" for field in fields if not field.is_required)
        yield f"- {named}: {always}{f'; if it applies, {others}' if others else ''}"
    yield ""


PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "docs/definition.md": definition_tables,
    "docs/settings.md": settings_tables,
    "docs/events.md": event_tables,
}
_TIMINGS: Final = frozenset(one.fields.name for one in TIMING_TYPES.values())


def put_into(text: str, tables: str) -> str:
    """The page with its generated tables replaced by these."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{tables}\n{END}{after}"


def _inside(described: Object[Any]) -> Iterator[Object[Any]]:
    for field in described:
        for inner in field.kind.inner:
            yield inner
            yield from _inside(inner)


def _settings(section: Field) -> Iterator[str]:
    if entries := ENTRIES.get(section.name):
        for table in dict.fromkeys(entries.tables.values()):
            tags = [f'`{entries.by} = "{tag}"`' for tag, one in entries.tables.items() if one is table]
            kind = f" with {' or '.join(tags)}" if entries.by else ""
            yield from _section(f"`[{section.name}.NAME]`{kind}", table)
        return
    if not section.kind.inner:
        yield from (f"### `{section.name}`", "", "At the top of the file, before the first table.", "")
        yield from _rows_of([section])
        return
    (table,) = section.kind.inner
    yield from _section(f"`[{section.name}]`", table)
    for field in table:
        for inner in field.kind.inner:
            yield from _section(f"`{section.name}.{field.name}`", inner)


def _section(title: str, described: Object[Any]) -> Iterator[str]:
    yield from (f"### {title}", "", described.says, "")
    if described.names:
        yield from _rows(described)


def _rows(described: Object[Any]) -> Iterator[str]:
    return _rows_of(described)


def _rows_of(fields: Iterable[Field]) -> Iterator[str]:
    yield from ("| name | type | default | meaning |", "|---|---|---|---|")
    for field in fields:
        cells = (f"`{field.name}`", field.kind.words, _default(field), field.help)
        yield f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"
    yield ""


def _default(field: Field) -> str:
    if field.is_required:
        return "required"
    if field.usual:
        return field.usual
    match field.written_default:
        case None:
            return "unset"
        case dict():
            return "`{}`"
        case tuple() | list() as default:
            return f"`{json.dumps(list(default))}`"
        case default:
            return f"`{json.dumps(default, ensure_ascii=False)}`"


if __name__ == "__main__":
    for name, tables in PAGES.items():
        page = ROOT / name
        page.write_text(put_into(page.read_text(encoding="utf-8"), tables()), encoding="utf-8")
        print(f"wrote {name}", file=sys.stderr)
