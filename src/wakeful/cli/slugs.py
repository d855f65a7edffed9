"""The argument SLUG, completed from the daemon's schedules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from wakeful.cli.invocation import Invocation, invocation_of

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

PATIENCE: Final = 1.0
"""Seconds; a person is waiting after pressing Tab."""
OFFERED_MAX: Final = 200
COMPARED_MAX: Final = 10_000


def complete_slug(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The daemon's slugs with this prefix."""
    from click.shell_completion import CompletionItem

    from wakeful.cli.terminal_text import line

    try:
        daemon = invocation_of(context).daemon()
        page = daemon.get("/api/schedule", q=incomplete or None, limit=OFFERED_MAX, timeout=PATIENCE)
        candidates = [(schedule["slug"], schedule["status"]) for schedule in page["schedules"]]
    except Exception:  # no completions on errors; a message would end up in the line being typed
        return []
    return [CompletionItem(line(slug), help=line(status)) for slug, status in candidates if slug.startswith(incomplete)]


def nearest_slug(invocation: Invocation, slug: str) -> str | None:
    """The slug that was probably meant by one that does not exist; None if no other is like it."""
    from difflib import get_close_matches

    try:
        slugs = [one["slug"] for one in invocation.daemon().pages("/api/schedule", "schedules", limit=COMPARED_MAX)]
    except Exception:  # the error that there is no such schedule matters more
        return None
    part_of = [one for one in slugs if slug in one]
    near = get_close_matches(slug, slugs, n=1) or (part_of if len(part_of) == 1 else [])
    return near[0] if near else None


slug_argument = click.argument("slug", metavar="SLUG", shell_complete=complete_slug)
optional_slug_argument = click.argument("slug", metavar="[SLUG]", required=False, shell_complete=complete_slug)
