"""What a command says: the answer on stdout, remarks and complaints on stderr, JSON for programs.

All text goes through `inert` on its way out.
"""

from typing import Any

import click

from wakeful.cli import terminal_text as inert
from wakeful.cli.errors import Ended


def json_out(value: Any) -> None:
    """The answer for a program, and nothing else."""
    click.echo(inert.as_json(value))


def json_line(value: Any) -> None:
    """One of several answers, each on a line of its own."""
    click.echo(inert.as_json_line(value))


def say(text: str) -> None:
    """A line of the answer for a person."""
    click.echo(inert.block(text))


def note(text: str) -> None:
    """A remark beside the answer: on stderr, so that a pipe gets only the answer."""
    click.echo(inert.block(text), err=True)


def complain(ended: Ended) -> None:
    """Why it did not work: in one line if there is one fault, one more line for each of several, and what to do."""
    lines = [f"{field}: {message}" if field else message for field, message in ended.faults]
    if len(lines) > 1:
        click.echo(f"wakeful: {len(lines)} things to put right:", err=True)
        for text in lines:
            click.echo(f"  {inert.block(text)}", err=True)
    else:
        click.echo(f"wakeful: {inert.block(lines[0] if lines else ended)}", err=True)
    if ended.hint:
        click.echo(f"  {inert.block(ended.hint)}", err=True)
