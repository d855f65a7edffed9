"""Quota slots: what can be asked of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeAlias

from wakeful.api.operation import Blocking, Noun, Returns, read, write
from wakeful.api.parameters import Param
from wakeful.api.patches import patch_body
from wakeful.api.replies import Reply
from wakeful.api.run_pages import RUNS
from wakeful.api.schedules import Started
from wakeful.api.shared_parameters import IdCursor, Limit, OfOutcome
from wakeful.config.one_slot import SLOT as DEFINITION
from wakeful.core.errors import refuse
from wakeful.core.fields import shown
from wakeful.core.refusals import NotFound
from wakeful.core.returned import returned
from wakeful.core.time.instants import Instant
from wakeful.features.quota import queries
from wakeful.features.quota.queries import SLOT, SlotView
from wakeful.features.quota.rows import OWNER
from wakeful.features.schedules.ledger import Search, SearchPage, search
from wakeful.features.schedules.views import encode
from wakeful.ports.store import Tx

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,31}", re.ASCII)
_KNOWN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)  # the slot of an agent has a longer name
_NAME_SCHEMA: Final = {"type": "string", "examples": ["main"], "pattern": f"^{_KNOWN.pattern}$"}
NEW_STATE: Final = Returns(SLOT, "The new state.")


def known_slot(name: str) -> str:
    """A valid name; 404 for any other text."""
    if not _KNOWN.fullmatch(name):
        raise NotFound(f"there is no slot {shown(name)}")
    return name


def new_name(name: str) -> str:
    """The name of a slot that may be written."""
    if not _NAME.fullmatch(name):
        refuse("name", f"{shown(name)} is not a name; use 1 to 32 letters, digits and . _ -")
    return name


def written_fields(data: Any) -> dict[str, Any]:
    """The fields of a definition. What a slot is returned with in addition is ignored, as with schedules."""
    if not isinstance(data, Mapping):
        refuse("", "a slot is a JSON object; write {…}")
    return {field: value for field, value in data.items() if field not in SLOT.known}


def written(done: WrittenSlot) -> Reply:
    """A written slot: created or updated."""
    headers = {"Location": f"/api/slots/{done.view.name}"} if done.is_created else {}
    return Reply(encode(SLOT.write(done.view)), 201 if done.is_created else 200, headers)


SlotPath: TypeAlias = Annotated[str, Param(schema=_NAME_SCHEMA, read=known_slot)]


@dataclass(frozen=True, slots=True)
class WrittenSlot:
    """A slot that was created or updated."""

    view: SlotView
    is_created: bool


class Slots(Noun):
    """Quota slots. Only a process that has settings for them has slots; without, all operations refuse."""

    @read("GET /api/slots", "List slots", Returns(returned(queries.Slots), "All of them."), id="list_slots")
    def list(self, tx: Tx, now: Instant) -> queries.Slots:
        return queries.all_slots(tx, self._app._quota().registry, now=now)

    @read(
        "GET /api/slots/{name}",
        "One slot",
        Returns(SLOT, "With its history for charts."),
        refuses=(404,),
        id="get_slot",
    )
    def get(self, tx: Tx, now: Instant, name: SlotPath) -> SlotView:
        return self._seen(tx, name, now)

    @read(
        "GET /api/slots/{name}/runs",
        "List the wakes of a slot",
        RUNS,
        refuses=(404,),
        id="list_wakes",
    )
    def runs(
        self,
        tx: Tx,
        now: Instant,
        name: SlotPath,
        *,
        limit: Limit = 100,
        cursor: IdCursor = None,
        outcome: OfOutcome = None,
    ) -> SearchPage:
        self._seen(tx, name, now)
        try:
            return search(tx, Search(f"{OWNER}{name}", outcome), limit=limit, before_id=cursor)
        except NotFound:  # never woken
            return SearchPage([], None)

    @write(
        "PUT /api/slots/{name}",
        "Create or replace a slot",
        Returns(SLOT, "Updated."),
        Returns(SLOT, "Created.", {"Location": "its URL"}),
        statuses=(200, 201),
        refuses=(409,),
        least="admin",
        id="put_slot",
        reply=written,
    )
    def put(
        self,
        tx: Tx,
        now: Instant,
        name: Annotated[str, Param(schema=_NAME_SCHEMA, read=new_name)],
        definition: Annotated[Mapping[str, Any], Param(where="document", schema=DEFINITION, read=written_fields)],
    ) -> WrittenSlot:
        """A slot from the settings is read-only: 409 names the file."""
        is_created = self._app._quota().commands.put(tx, name, definition, now=now)
        return WrittenSlot(self._seen(tx, name, now), is_created)

    @write(
        "PATCH /api/slots/{name}",
        "Change fields of a slot (RFC 7396)",
        NEW_STATE,
        refuses=(404, 409),
        least="admin",
        id="patch_slot",
        body=patch_body({"poll": "10m"}),
    )
    def patch(
        self,
        tx: Tx,
        now: Instant,
        name: SlotPath,
        changes: Annotated[Mapping[str, Any], Param(where="document", read=written_fields)],
    ) -> SlotView:
        """Null resets a field to its default."""
        self._app._quota().commands.patch(tx, name, changes, now=now)
        return self._seen(tx, name, now)

    @write(
        "DELETE /api/slots/{name}",
        "Remove a slot",
        Returns(None, "Removed; its runs stay in the ledger."),
        statuses=(204,),
        refuses=(404, 409),
        least="admin",
        id="delete_slot",
    )
    def remove(self, tx: Tx, now: Instant, name: SlotPath) -> None:
        self._app._quota().commands.remove(tx, name, now=now)

    @write(
        "POST /api/slots/{name}/wake",
        "Wake a slot now",
        Returns(returned(Started), "The wake was requested; it is sent without a pre-check."),
        statuses=(202,),
        refuses=(404, 409),
        id="wake_slot",
    )
    def wake(self, tx: Tx, now: Instant, name: SlotPath) -> Started:
        """The run ends when a poll shows the wake, or when the retry window is over."""
        return Started(self._app._quota().commands.wake(tx, name, now=now))

    @write(
        "POST /api/slots/{name}/poll",
        "Poll the quota of a slot now",
        Returns(SLOT, "The state before that poll."),
        statuses=(202,),
        refuses=(404, 409),
        id="poll_slot",
    )
    def poll(self, tx: Tx, now: Instant, name: SlotPath) -> SlotView:
        self._app._quota().commands.poll(tx, name, now=now)
        return self._seen(tx, name, now)

    @write(
        "POST /api/slots/{name}/resume",
        "Resume a disabled slot",
        NEW_STATE,
        refuses=(404, 409),
        id="resume_slot",
    )
    def resume(self, tx: Tx, now: Instant, name: SlotPath) -> SlotView:
        """Enables polling and waking again, resets the error counts, and polls the quota immediately."""
        self._app._quota().commands.resume(tx, name, now=now)
        return self._seen(tx, name, now)

    def _seen(self, tx: Tx, name: str, now: Instant) -> SlotView:
        return queries.one_slot(tx, self._app._quota().registry, name, now=now)


class BlockingSlots(Slots, Blocking):
    """Quota slots, for programs without an event loop."""
