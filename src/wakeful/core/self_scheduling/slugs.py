"""Agents' slugs: each agent has its own namespace (`coder.mondays`), so no name tells it about another's."""

import re

from wakeful.core.errors import refuse
from wakeful.core.schedule.definition import check_slug
from wakeful.core.slug import SLUG_PATTERN


def namespace(agent: str) -> str:
    """The prefix of all of an agent's slugs."""
    return f"{re.sub(r'[^a-z0-9_-]+', '-', agent.lower()).strip('-_') or 'agent'}."


def owned_slug(agent: str, slug: object) -> str:
    """The full slug for the name an agent uses, with or without its namespace."""
    if not isinstance(slug, str) or not SLUG_PATTERN.fullmatch(slug):
        refuse("slug", "is not a slug; use 1 to 40 of a-z 0-9 . _ - beginning with a letter or digit")
    prefix = namespace(agent)
    full = slug if slug.startswith(prefix) and len(slug) > len(prefix) else prefix + slug
    if not SLUG_PATTERN.fullmatch(full):
        refuse("slug", f"{slug!r} is too long with the prefix {prefix!r}; use at most {64 - len(prefix)} characters")
    check_slug(full)
    return full
