"""An agent's edit of an existing schedule: what it may replace, and what stays as a person set it."""

from collections.abc import Collection
from dataclasses import replace

from wakeful.core.refusals import Conflict
from wakeful.core.schedule.actions import ActionSpec, Command, Prompt
from wakeful.core.schedule.definition import Definition
from wakeful.core.schedule.exclude import Exclude
from wakeful.core.self_scheduling.limits import Limited
from wakeful.core.time.instants import format_instant

PERSIST = "persistSession"


def edited(before: Definition, wanted: Definition, given: Collection[str], *, is_live: bool) -> Definition:
    """The stored definition with the agent's changes. A live schedule keeps its end, unless the agent gives an earlier
    one."""
    is_other = type(before.action) is not type(wanted.action)
    if is_other and (before.budget is not None or before.check is not None):
        raise Conflict(
            f"a person set a budget or a check on {before.slug}, so it stays a prompt; use another slug for a command"
        )
    changed = replace(
        before,
        timing=wanted.timing,
        action=wanted.action if is_other else _action(before.slug, before.action, wanted.action, given),
        enabled=None,
        deliver=wanted.deliver if is_other or "deliver" in given else before.deliver,
        timeout=wanted.timeout if "timeout" in given else before.timeout,
        expires_at=wanted.expires_at,
        exclude=_excluded(before, wanted.exclude) if "exclude" in given else before.exclude,
    )
    if is_other:
        changed = replace(changed, success=None, retry=None)
    return _ending(before, changed, given) if is_live else changed


def _excluded(before: Definition, wanted: Exclude | None) -> Exclude | None:
    """The excluded days: an agent can add dates. It cannot tell who excluded the others, so it cannot remove any."""
    if before.exclude is None or wanted is None:
        return wanted or before.exclude
    missing = sorted(set(before.exclude.dates) - set(wanted.dates))
    if missing or wanted.timezone not in (None, before.exclude.timezone):
        kept = ", ".join(missing) or "its timezone"
        raise Conflict(f"an agent cannot remove what {before.slug} excludes ({kept}); add dates to those it has")
    return replace(before.exclude, dates=wanted.dates)


def _ending(before: Definition, changed: Definition, given: Collection[str]) -> Definition:
    if "expiresAt" not in given:
        return replace(changed, expires_at=before.expires_at)
    if before.expires_at is not None and (changed.expires_at or 0) > before.expires_at:
        ends = format_instant(before.expires_at)
        raise Limited("expires", f"{before.slug} ends at {ends}, and a change cannot extend it; leave expiresAt out")
    return changed


def _action(slug: str, before: ActionSpec, wanted: ActionSpec, given: Collection[str]) -> ActionSpec:
    if isinstance(before, Prompt) and isinstance(wanted, Prompt):
        session = dict(before.session_config)
        if "sessionConfig" in given:
            session.pop(PERSIST, None)
            session |= wanted.session_config
        return replace(before, text=wanted.text, session_config=session)
    if isinstance(before, Command) and isinstance(wanted, Command):
        if before.argv != wanted.argv and (before.env or before.pass_env or before.stdin is not None):
            raise Conflict(
                f"a person gave the command of {slug} its own input or environment, so only a person can change it; "
                f"use another slug for another command"
            )
        return replace(before, argv=wanted.argv)
    return wanted
