"""Schedules: list, write, run and pause them. What can be asked about one is in `one_schedule`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

from wakeful.api.actors import Actor
from wakeful.api.approvals import Approvals
from wakeful.api.etags import if_match as stored
from wakeful.api.etags import if_match_existing as existing
from wakeful.api.etags import if_none_match as absent
from wakeful.api.future import Future
from wakeful.api.one_schedule import ETAG, OneSchedule
from wakeful.api.operation import Blocking, Returns, perform, read, write
from wakeful.api.parameters import Param
from wakeful.api.patches import patch_body
from wakeful.api.planned import Planned
from wakeful.api.reading import end_of_pause, is_mapping
from wakeful.api.replies import ended, listed, shown, written
from wakeful.api.sentences import Sentences
from wakeful.api.shared_parameters import (
    DryRun,
    IfMatch,
    IfNoneMatch,
    Limit,
    NewSlug,
    Patience,
    Searched,
    SlugCursor,
    SlugPath,
    Slugs,
    Until,
)  # fmt: skip
from wakeful.app.definitions import locked
from wakeful.app.owned_writing import AgentWritten, put_owned
from wakeful.app.values import WrittenSchedule
from wakeful.core.refusals import Conflict, NotFound
from wakeful.core.returned import RunId, returned
from wakeful.core.schedule.definition import SCHEDULE as DEFINITION
from wakeful.core.schedule.health import Health
from wakeful.core.time.instants import Instant
from wakeful.features.schedules import commands, owned, owned_stops, queries
from wakeful.features.schedules.owned_views import owned_page
from wakeful.features.schedules.queries import Choice, Page, chosen
from wakeful.features.schedules.run_views import RUN, RunView
from wakeful.features.schedules.timeline import latest
from wakeful.features.schedules.views import SCHEDULE, ScheduleView, Status, glances_text
from wakeful.ports.store import Tx

WARNED: Final = {**ETAG, "Wakeful-Warning": "a warning about the definition, if any"}
NEW_STATE: Final = Returns(SCHEDULE, "The new state.")


@dataclass(frozen=True, slots=True)
class Started:
    """A requested run."""

    run_id: RunId


class Schedules(OneSchedule, Planned, Future, Sentences):
    """Schedules: add, change, run, pause, and ask about them."""

    @read(
        "GET /api/schedule",
        "List schedules",
        Returns(returned(Page, name="Schedules"), "A page."),
        id="list_schedules",
        agents=True,
        reply=listed,
    )
    def list(
        self,
        tx: Tx,
        now: Instant,
        *,
        status: Annotated[Status | None, Param("only schedules with this status")] = None,
        q: Searched = None,
        limit: Limit = 100,
        cursor: SlugCursor = None,
        slugs: Slugs = None,
        recent: Annotated[int, Param("include this many of the latest runs with each", least=0, most=30)] = 0,
        troubled: Annotated[bool, Param("only schedules whose health is failing or late")] = False,
        health: Annotated[Health | None, Param("only schedules with this health")] = None,
        finished: Annotated[bool | None, Param("true: only one-shots that succeeded; false: all others")] = None,
        owner: Annotated[str | None, Param("only schedules of this agent", longest=80)] = None,
    ) -> Page:
        """Ordered by slug. A filtered page may be short or even empty and still have a `next`."""
        most = limit if recent == 0 else min(limit, 100)
        agent = self._actor.agent
        if agent is not None:
            return owned_page(
                tx,
                agent.agent,
                Choice(None, limit, status, q, is_finished=finished, owner=owner),
                now=now,
                terms=self._app._terms,
            )
        page = chosen(
            tx,
            Choice(cursor, most, status, q, slugs, troubled, health, finished, owner),
            now=now,
            terms=self._app._terms,
        )
        runs = latest(tx, page.schedules, limit=recent) if recent else {}
        return page._replace(recent={slug: glances_text(rows) for slug, rows in runs.items()} if recent else None)

    @perform(
        "PUT /api/schedule/{slug}",
        "Create or replace a schedule",
        Returns(SCHEDULE, "Updated, or only checked.", WARNED),
        Returns(SCHEDULE, "Created.", {**ETAG, "Location": "its URL"}),
        statuses=(200, 201),
        refuses=(409, 412),
        least="admin",
        id="put_schedule",
        agents=True,
        reply=written,
    )
    async def put(
        self,
        slug: NewSlug,
        definition: Annotated[Mapping[str, Any], Param(where="document", schema=DEFINITION)],
        *,
        dry_run: DryRun = False,
        if_match: IfMatch = None,
        if_none_match: IfNoneMatch = None,
    ) -> WrittenSchedule | AgentWritten:
        """The schedule's state (next time, pause, error count) is kept; only a changed timing is planned again."""
        agent = self._actor.agent
        if agent is not None:
            return await put_owned(self._app, agent, slug, definition)
        guard = stored(if_match) or absent(if_none_match)
        return warned(definition, await self._app._write(slug, definition, guard=guard, is_rehearsal=dry_run))

    @perform(
        "PATCH /api/schedule/{slug}",
        "Change fields of a schedule (RFC 7396)",
        Returns(SCHEDULE, "The new state.", WARNED),
        refuses=(404, 409, 412),
        least="admin",
        id="patch_schedule",
        reply=written,
        body=patch_body({"enabled": False}),
    )
    async def patch(
        self,
        slug: SlugPath,
        changes: Annotated[Mapping[str, Any], Param(where="document", read=is_mapping)],
        *,
        dry_run: DryRun = False,
        if_match: IfMatch = None,
    ) -> WrittenSchedule:
        """Objects merge, null resets a field to its default, everything else replaces."""
        guard = stored(if_match)
        return warned(changes, await self._app._patch(slug, changes, guard=guard, is_rehearsal=dry_run))

    @perform(
        "DELETE /api/schedule/{slug}",
        "Remove a schedule",
        Returns(None, "Removed; a run in progress may finish, and past runs are kept."),
        statuses=(204,),
        refuses=(404, 412),
        least="admin",
        id="delete_schedule",
        agents=True,
    )
    async def remove(self, slug: SlugPath, *, if_match: IfMatch = None) -> None:
        app, agent, guard = self._app, self._actor.agent, existing(if_match)

        def remove(tx: Tx, now: Instant) -> None:
            if agent is not None:
                owned.remove(tx, agent.agent, slug, hooks=app._open.hooks, now=now)
                return
            owned_stops.remember_removal(tx, slug, now=now)
            if guard is not None:
                guard(locked(tx, slug))
            commands.remove(tx, slug, hooks=app._open.hooks, now=now)

        try:
            await app._command(remove)
        except NotFound:
            if agent is not None:
                raise
            await self._reject_proposed(slug)

    @perform(
        "POST /api/schedule/{slug}/run",
        "Run a schedule now",
        Returns(RUN, "With `wait`: the finished run."),
        Returns(returned(Started), "The run was requested; with `wait`: it has not ended within the timeout."),
        statuses=(200, 202),
        refuses=(404, 409),
        id="run_schedule",
        reply=ended,
    )
    async def run(
        self,
        slug: SlugPath,
        *,
        wait: Annotated[bool, Param("respond when the run has ended", where="query")] = False,
        within: Patience = "60s",
    ) -> RunView | Started:
        """One attempt; the next times do not change. 409 if it has an open run."""
        started = Started(await self._app._command(lambda tx, now: commands.run_now(tx, slug, now=now)))
        if wait:
            try:
                return await self._app.wait_for(started.run_id, within=within)
            except Conflict:
                pass  # still in progress: the run was requested all the same
        return started

    @write(
        "POST /api/schedule/{slug}/pause",
        "Pause a schedule",
        NEW_STATE,
        refuses=(404, 409),
        body_name="Pause",
        body_says="When the pause ends; without `until`, it lasts until the schedule is resumed.",
        id="pause_schedule",
        agents=True,
        reply=shown,
    )
    def pause(self, tx: Tx, now: Instant, slug: SlugPath, *, until: Until = None) -> ScheduleView:
        """Nothing starts until the schedule is resumed, or until `until`; a run in progress finishes."""
        agent, hooks = self._actor.agent, self._app._open.hooks
        if agent is not None:
            owned.pause(tx, agent.agent, slug, hooks=hooks, now=now)
        else:
            commands.pause(tx, slug, hooks=hooks, now=now, until=end_of_pause(until, now))
        return self._seen(tx, slug, now)

    @write(
        "POST /api/schedule/{slug}/resume",
        "Resume a schedule",
        NEW_STATE,
        refuses=(404, 409),
        id="resume_schedule",
        agents=True,
        reply=shown,
    )
    def resume(self, tx: Tx, now: Instant, slug: SlugPath) -> ScheduleView:
        """Continues a paused or disabled schedule from now on; resets the error count."""
        agent = self._actor.agent
        if agent is not None:
            owned.resume(tx, agent.agent, slug, now=now)
        else:
            commands.resume_schedule(tx, slug, now=now)
        return self._seen(tx, slug, now)

    @write(
        "POST /api/schedule/{slug}/acknowledge",
        "Acknowledge the incident of a schedule",
        NEW_STATE,
        refuses=(404,),
        id="acknowledge_schedule",
        reply=shown,
    )
    def acknowledge(self, tx: Tx, now: Instant, slug: SlugPath) -> ScheduleView:
        """Closes the schedule's incident without a recovery message; a failed one-shot is done."""
        commands.acknowledge(tx, slug, now=now)
        return self._seen(tx, slug, now)

    async def _reject_proposed(self, slug: str) -> None:
        """Reject what an agent proposed under the name of a schedule that does not exist."""
        proposal = await self._app._look(lambda tx, now: queries.proposed(tx, slug, now=now))
        if proposal is None:
            raise NotFound(f"there is no schedule {slug!r}")
        await Approvals(self._app, Actor(name="removed")).decide(proposal.proposal_id, "reject")


def warned(sent: object, done: WrittenSchedule) -> WrittenSchedule:
    """A `description` is derived, so one that differs is not stored; what is sent back unchanged needs no warning."""
    description = sent.get("description") if isinstance(sent, Mapping) else None
    if description is None or description == (derived := done.view.to_json()["description"]):
        return done
    text = f"description is derived from the timing ({derived}); the description that was sent is not stored"
    return done._replace(warnings=(*done.warnings, text.encode("ascii", "replace").decode()))


class BlockingSchedules(Schedules, Blocking):
    """Schedules, for programs without an event loop."""
