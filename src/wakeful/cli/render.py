"""Output of a command: the result on stdout, notes and errors on stderr, JSON for programs.

All text is made harmless by `inert` before it is printed.
"""

from typing import Any

import click

from wakeful.cli import terminal_text as inert
from wakeful.cli.errors import Ended


def plural(count: int, word: str) -> str:
    """`1 run`, `2 runs`."""
    return f"{count:,} {word}{'s' * (count != 1)}"


def json_out(value: Any) -> None:
    """Print the result as JSON, and nothing else."""
    click.echo(inert.as_json(value))


def json_line(value: Any) -> None:
    """Print one of several results, one JSON object per line."""
    click.echo(inert.as_json_line(value))


def say(text: str) -> None:
    """Print a line of the result."""
    click.echo(inert.block(text))


def note(text: str) -> None:
    """Print a note on stderr, so that a pipe gets only the result."""
    click.echo(inert.block(text), err=True)


def complain(ended: Ended) -> None:
    """Print an error: one line for a single fault, a list for several, then the hint."""
    lines = [f"{field}: {message}" if field else message for field, message in ended.faults]
    if len(lines) > 1:
        click.echo(f"wakeful: {len(lines)} errors:", err=True)
        for text in lines:
            click.echo(f"  {inert.block(text)}", err=True)
    else:
        click.echo(f"wakeful: {inert.block(lines[0] if lines else ended)}", err=True)
    if ended.hint:
        click.echo(f"  {inert.block(ended.hint)}", err=True)
