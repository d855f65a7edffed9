"""What all commands share: the home folder, the output format, and error handling.

Import nothing heavy here: this file is loaded for every `--help`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from wakeful.cli.errors import FAILED, Ended

if TYPE_CHECKING:
    from wakeful.cli.client import Daemon
    from wakeful.cli.stored import Source

HOME_VARIABLE: Final = "WAKEFUL_HOME"


@dataclass(slots=True)
class Invocation:
    """One invocation of `wakeful`: filled in while options are parsed; the innermost option wins."""

    home: Path
    is_json: bool = False
    is_home_named: bool = False
    """Whether --home was given."""

    def daemon(self, *, what: str = "") -> Daemon:
        """The daemon of this home; raises `NoDaemon` if there is none; `what` adds the consequence."""
        from wakeful.cli.client import find

        return find(self.home, what=what)

    def source(self) -> Source:
        """The daemon of this home, or its store if there is none; read-only."""
        from wakeful.cli.stored import source_of

        return source_of(self.home)


def invocation_of(context: click.Context) -> Invocation:
    """The invocation of this context (created on first use: options are parsed before any command runs)."""
    root = context.find_root()
    if root.obj is None:
        root.obj = Invocation(full_path(os.environ.get(HOME_VARIABLE) or "~/.wakeful"))
    invocation: Invocation = root.obj
    return invocation


def common_options() -> list[click.Parameter]:
    """The options that may come before or after the command."""
    return [
        click.Option(
            ["--home"],
            metavar="DIR",
            expose_value=False,
            is_eager=True,
            callback=_set_home,
            type=click.Path(file_okay=False),
            help=f"The home folder (or {HOME_VARIABLE}; default ~/.wakeful).",
        ),
        click.Option(
            ["-o", "--output"],
            type=click.Choice(["text", "json"]),
            expose_value=False,
            is_eager=True,
            callback=_set_output,
            help="text (default) or json.",
        ),
    ]


class HomeCommand(click.Command):
    """A command with the common options; its function gets the `Invocation` first."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.params.extend(common_options())

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; known errors print their message and exit with their code."""
        inner = self.callback
        if inner is None:
            return None
        invocation = invocation_of(ctx)
        try:
            return ctx.invoke(inner, invocation, **ctx.params)
        except Ended as ended:
            from wakeful.cli.render import complain

            if ended.hint is None and ended.is_unknown and isinstance(slug := ctx.params.get("slug"), str):
                from wakeful.cli.slugs import nearest_slug

                near = nearest_slug(invocation, slug)
                ended.hint = None if near is None else f"did you mean {near}?"
            complain(ended)
            ctx.exit(ended.code)


class HomeCommandGroup(click.Group):
    """A command group; without a subcommand it runs its own function."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **{**settings, "invoke_without_command": True})
        self.params.extend(common_options())
        self._own = HomeCommand(self.name, callback=self.callback)
        self.callback = self._alone

    def _alone(self) -> None:
        """Run the group's own function if no subcommand was given."""
        context = click.get_current_context()
        if context.invoked_subcommand is None:
            self._own.invoke(click.Context(self._own, parent=context, info_name=self.name))

    def subcommand(self, name: str, **settings: Any) -> Callable[[Callable[..., Any]], HomeCommand]:
        """Decorate a function to be the subcommand of that name."""

        def decorate(function: Callable[..., Any]) -> HomeCommand:
            made = command(name, **settings)(function)
            self.add_command(made)
            return made

        return decorate


def group(name: str, **settings: Any) -> Callable[[Callable[..., Any]], HomeCommandGroup]:
    """Decorate a function to be the command group of that name."""

    def decorate(function: Callable[..., Any]) -> HomeCommandGroup:
        return click.command(name, cls=HomeCommandGroup, **settings)(function)

    return decorate


def command(name: str, **settings: Any) -> Callable[[Callable[..., Any]], HomeCommand]:
    """Decorate a function to be the command of that name."""

    def decorate(function: Callable[..., Any]) -> HomeCommand:
        return click.command(name, cls=HomeCommand, **settings)(function)

    return decorate


def end(code: int = FAILED) -> None:
    """Exit; everything has been printed already."""
    click.get_current_context().exit(code)


def _set_home(context: click.Context, _option: click.Parameter, value: str | None) -> None:
    if value is not None:
        invocation = invocation_of(context)
        invocation.home, invocation.is_home_named = full_path(value), True


def _set_output(context: click.Context, _option: click.Parameter, value: str | None) -> None:
    if value is not None:
        invocation_of(context).is_json = value == "json"


def full_path(text: str) -> Path:
    """Expand a folder as typed: `~` is the user's home."""
    return Path(os.path.abspath(os.path.expanduser(text)))  # noqa: PTH100, PTH111 - pathlib fails without a user's home
