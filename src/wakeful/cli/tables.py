"""Tables that fit, and facts in two columns.

A table is fitted to the terminal: columns that may be cut shrink first, the widest before the others; if that is not
enough, optional columns are dropped. Piped output is not cut unless COLUMNS sets a width.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any, Final, TypeAlias

import click

from wakeful.cli import terminal_text as inert

GAP: Final = 2
ENDLESS: Final = 100_000
WIDTH_MIN: Final = 40
Style: TypeAlias = Mapping[str, Any]
"""Options of `click.style`."""
STYLES: Final[Mapping[str, Style]] = {
    "running": {"fg": "cyan"},
    "waiting": {"fg": "yellow"},
    "paused": {"fg": "yellow"},
    "disabled": {"fg": "red"},
    "invalid": {"fg": "red"},
    "done": {"dim": True},
    "succeeded": {"fg": "green"},
    "failed": {"fg": "red"},
    "timedOut": {"fg": "red"},
    "unknown": {"fg": "magenta"},
    "unconfirmed": {"fg": "magenta"},
    "cancelled": {"dim": True},
    "skipped": {"fg": "yellow"},
    "missed": {"fg": "yellow"},
    "ok": {"fg": "green"},
    "failing": {"fg": "red"},
    "late": {"fg": "red"},
    "warning": {"fg": "yellow"},
    "wrong": {"fg": "red"},
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column. `least`: its minimum width (None: never cut). `drop`: 1 is dropped first, 0 never."""

    title: str
    least: int | None = None
    drop: int = 0
    is_state: bool = False


def table(columns: Sequence[Column], rows: Sequence[Sequence[object]]) -> None:
    """Print a table without borders, fitted to the terminal."""
    cells = [[inert.line(value) for value in row] for row in rows]
    natural = [max([cell_len(column.title), *(cell_len(row[i]) for row in cells)]) for i, column in enumerate(columns)]
    widths = _fitted(columns, natural, width())
    _print(_line([column.title for column in columns], widths, [{"bold": True}] * len(columns)))
    for row in cells:
        styles = [_style(text) if column.is_state else {} for text, column in zip(row, columns, strict=True)]
        _print(_line(row, widths, styles))


def facts(pairs: Sequence[tuple[str, object]]) -> None:
    """Print names and values in two columns; further lines of a value are aligned below its first."""
    room = max([cell_len(name) for name, _ in pairs], default=0)
    indent = room + GAP
    for name, value in pairs:
        lines = [piece for line in inert.block(value).split("\n") for piece in _pieces(line, width() - indent)]
        click.echo(f"{name.rjust(room)}: {lines[0]}".rstrip())
        for line in lines[1:]:
            click.echo(f"{' ' * indent}{line}".rstrip())


def paragraph(text: object, *, label: str = "") -> None:
    """Print labelled text, wrapped between words only (a word may be part of a command to copy)."""
    indent, room = len(label), width() - len(label)
    lines = [
        piece
        for line in inert.block(text).split("\n")
        for piece in wrap(line, room, break_long_words=False, break_on_hyphens=False) or [""]
    ]
    for number, line in enumerate(lines):
        click.echo(f"{label if number == 0 else ' ' * indent}{line}".rstrip())


def width() -> int:
    """The line width: COLUMNS, the terminal's, or unlimited into a pipe."""
    if os.environ.get("COLUMNS", "").isdigit() or sys.stdout.isatty():
        return max(WIDTH_MIN, shutil.get_terminal_size((80, 24)).columns)
    return ENDLESS


def _pieces(text: str, room: int) -> list[str]:
    if cell_len(text) <= room:
        return [text]
    from rich.console import Console  # imported late: it takes longer than most commands
    from rich.text import Text

    return [piece.plain.rstrip() for piece in Text(text).wrap(Console(width=ENDLESS), max(room, 10))]


def _fitted(columns: Sequence[Column], natural: Sequence[int], room: int) -> dict[int, int]:
    """The width of each visible column."""
    widths = dict(enumerate(natural))
    while True:
        cut = _cut(columns, widths, room)
        droppable = [i for i in widths if columns[i].drop]
        if _total(cut) <= room or not droppable:
            return cut
        widths.pop(min(droppable, key=lambda i: columns[i].drop))


def _cut(columns: Sequence[Column], widths: Mapping[int, int], room: int) -> dict[int, int]:
    cut = dict(widths)
    spare = {i: cut[i] - least for i in cut if (least := columns[i].least) is not None and cut[i] > least}
    for i in sorted(spare, key=lambda i: -spare[i]):
        cut[i] -= min(spare[i], max(0, _total(cut) - room))
    return cut


def _total(widths: Mapping[int, int]) -> int:
    return sum(widths.values()) + GAP * (len(widths) - 1)


def _line(row: Sequence[str], widths: Mapping[int, int], styles: Sequence[Style]) -> str:
    cells = [(_cell(row[i], room), styles[i]) for i, room in widths.items()]
    while cells and not cells[-1][0].strip():
        cells.pop()
    if cells:
        cells[-1] = (cells[-1][0].rstrip(), cells[-1][1])
    return (" " * GAP).join(click.style(text, **style) if style else text for text, style in cells)


def _cell(text: str, room: int) -> str:
    """Exactly this wide: padded, or cut with an ellipsis."""
    return _sized(text, room) if cell_len(text) <= room else f"{_sized(text, room - 1)}…"


def cell_len(text: str) -> int:
    """How many terminal cells `text` takes; a Chinese character takes two. Rich, which computes this, is imported
    late."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _sized(text: str, room: int) -> str:
    if text.isascii():
        return text[:room].ljust(room)
    from rich.cells import set_cell_size

    return set_cell_size(text, room)


def _style(text: str) -> Style:
    return STYLES.get(text.replace("(", " ").split(" ")[0], {})


def _print(line: str) -> None:
    """Print with colours on a terminal that supports them, as plain text otherwise."""
    is_plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") in ("dumb", "unknown")
    click.echo(line, color=False if is_plain else None)
