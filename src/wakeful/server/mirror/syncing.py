"""Sync some schedules with their files: apply edits, then write outdated files.

Every cause (a commit, a saved file, the rescan, the start) takes the same path, because it compares states and not
events. A file is in one of four states: missing, ours (its digest is known), up to date, or edited. Missing files and
ours are written; edited ones are read first and never overwritten before they were applied.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

from wakeful.app.bootstrap import Parts
from wakeful.core.errors import Invalid
from wakeful.core.schedule.definition_json import decode_definition
from wakeful.core.time.instants import SECOND, Duration, Instant
from wakeful.engine.tick_gaps import last_tick
from wakeful.features.schedules import queries
from wakeful.features.schedules.approvals import asking
from wakeful.features.schedules.checks import check
from wakeful.features.schedules.commands import Put
from wakeful.features.schedules.file_proposals import AFTER_RUN, Asking, Waits, propose_definition, propose_run
from wakeful.ports.store import StoreUnavailable, Tx
from wakeful.server.mirror.edits import (
    LastRunEdit,
    definition_of,
    last_run_of,
    note_definition,
    take_definition,
    take_last_run,
)
from wakeful.server.mirror.folder import FileWrite, Folder, FolderContents, MirrorFile, Removal
from wakeful.server.mirror.known import Known, KnownText, digest_of, recall, remember
from wakeful.server.mirror.report import OnReport, Report
from wakeful.server.mirror.texts import (
    DEFINITION,
    FILES,
    LAST_RUN,
    Text,
    Which,
    error_name,
    error_text,
    is_mirrored,
    render,
)

T = TypeVar("T")
Phase: TypeAlias = Literal["start", "run", "stop"]
"""At startup edits are applied and nothing is written; at shutdown it is the other way round."""

Place: TypeAlias = tuple[str, str]
"""A slug and a file name; no name: the folder itself."""

SETTLE: Final[Duration] = SECOND
"""How long a file must be unchanged: a broken one may be half written, and someone who forces a run with the old recipe
(write the file, stop, start) wants the run after the start."""

SOON: Final[Duration] = 100


class Offload(Protocol):
    """Runs blocking calls off the event loop."""

    def __call__(self, work: Callable[[], T]) -> Awaitable[T]: ...


class Stored(NamedTuple):
    """The stored state of a slug."""

    exists: bool
    texts: Mapping[str, Text] | None  # None: it has no files
    known: Known


class AwaitsPerson(Exception):
    """An edit that an agent may have made."""

    def __init__(self, waits: Waits) -> None:
        super().__init__(waits.short)
        self.waits = waits


class Refusal(NamedTuple):
    """A refused edit that waits for its author."""

    digest: str
    message: str


class MirrorSync:
    """Syncs schedules and their files in batches."""

    def __init__(
        self,
        folder: Folder,
        parts: Parts,
        which: Which,
        disk: Offload,
        tell: OnReport,
        is_trusting: Callable[[], bool] = lambda: False,
    ) -> None:
        self._is_trusting = is_trusting
        self._changed_since: Instant | None = None  # at the start: files may have changed since the last tick
        self._folder = folder
        self._parts = parts
        self._which = which
        self._disk = disk
        self._tell = tell
        self._settling: dict[Place, tuple[str, int]] = {}
        self.refusals: dict[Place, Refusal] = {}
        self.lag: Duration = 0  # how much later than it was saved a file may be noticed
        self.trouble: str | None = None  # why files could not be written last time
        self.later: dict[str, int] = {}  # slugs to sync again, and when on the monotonic clock

    async def sync(self, slugs: Mapping[str, bool], phase: Phase) -> list[str]:
        """Sync these slugs; True: something changed in their folder. Returns those without files."""
        stored = await self._ask(slugs)
        wanted = [slug for slug, is_touched in slugs.items() if is_touched or stored[slug].texts or stored[slug].known]
        if not wanted:
            return list(slugs)
        known = {slug: _digests(stored[slug]) for slug in wanted}
        looked = await self._disk(lambda: self._folder.look(known))
        self._changed_since = await self._parts.store.read(last_tick) if phase == "start" else None
        if phase != "stop":
            taken = await self._take_all(wanted, looked, stored, phase)
            stored |= await self._ask(taken)
        if phase != "start":
            await self._write_all(wanted, looked, stored)
        return [slug for slug in slugs if not stored[slug].texts and not stored[slug].known]

    # --- the store ---------------------------------------------------------------------------------------------------

    async def _ask(self, slugs: Iterable[str]) -> dict[str, Stored]:
        wanted = list(slugs)
        now = self._parts.clock.read().now
        return await self._parts.store.read(lambda tx: self._read(tx, wanted, now)) if wanted else {}

    def _read(self, tx: Tx, slugs: Sequence[str], now: Instant) -> dict[str, Stored]:
        known = recall(tx, slugs)
        rows = tx.schedules.by_slugs(slugs)
        return {
            slug: Stored(
                slug in rows,
                render(queries.get(tx, slug, now=now, terms=self._parts.terms.value))
                if slug in rows and is_mirrored(slug, rows[slug].definition, self._which)
                else None,
                known[slug],
            )
            for slug in slugs
        }

    async def _remember(self, states: Mapping[str, Known]) -> None:
        if states:
            await self._parts.store.write(lambda tx: remember(tx, states))

    # --- edits -------------------------------------------------------------------------------------------------------

    async def _take_all(
        self, slugs: Sequence[str], looked: Mapping[str, FolderContents], stored: Mapping[str, Stored], phase: Phase
    ) -> list[str]:
        """Apply edits; returns where there were any. Concurrently, so that the store groups the commits."""
        edited = [slug for slug in slugs if self._needs_a_look(slug, looked[slug], stored[slug])]
        fates = await asyncio.gather(
            *(self._take(slug, looked[slug], stored[slug], phase) for slug in edited), return_exceptions=True
        )
        for fate in fates:
            if isinstance(fate, BaseException):
                raise fate
        taken = [slug for slug, fate in zip(edited, fates, strict=True) if fate]
        if taken:
            self._parts.engine.ring_bell()
        return taken

    def _needs_a_look(self, slug: str, looked: FolderContents, stored: Stored) -> bool:
        if looked.problem is None:
            self._forgive((slug, ""))
            return any(_is_edited(looked, stored, name) for name in FILES)
        if stored.texts is not None or not looked.is_stray:
            self._refuse((slug, ""), "", looked.problem)
        return False

    async def _take(self, slug: str, looked: FolderContents, stored: Stored, phase: Phase) -> bool:
        has_taken = False
        if _is_edited(looked, stored, DEFINITION):
            before = stored.known.get(DEFINITION, ()) if stored.exists else ()
            has_taken = await self._guarded(
                (slug, DEFINITION), looked.files[DEFINITION], partial(self._take_definition, slug, before=before)
            )
        if (stored.texts is not None or has_taken) and _is_edited(looked, stored, LAST_RUN):
            file, before = looked.files[LAST_RUN], stored.known.get(LAST_RUN, ())
            is_rested = phase == "start" or self._has_settled((slug, LAST_RUN), file)
            if file.problem is not None or is_rested:
                take = partial(self._take_last_run, slug, before=before)
                has_taken |= await self._guarded((slug, LAST_RUN), file, take)
        return has_taken

    async def _guarded(self, place: Place, file: MirrorFile, take: Callable[..., Awaitable[None]]) -> bool:
        """Apply one file, or report what is wrong with it. Its errors must not affect other files (L9)."""
        digest = file.digest or ""
        try:
            if file.problem is not None:
                if self._has_settled(place, file):
                    self._refuse(place, digest, file.problem)
                return False
            await take(file.value, digest)
        except AwaitsPerson as awaits:
            self._refuse(place, digest, awaits.waits.text, said=awaits.waits.short)
        except Invalid as invalid:
            self._refuse(place, digest, "\n".join(str(error) for error in invalid.errors))
        except StoreUnavailable:
            raise
        except Exception as error:
            self._refuse(place, digest, f"cannot be applied: {type(error).__name__}: {error}")
        else:
            return True
        return False

    async def _take_definition(self, slug: str, value: Any, digest: str, *, before: Sequence[KnownText]) -> None:
        parts, now = self._parts, self._now
        definition = definition_of(value, slug, before, self._which, default_zone=parts.conditions.default_zone)
        checked = check(definition, parts.conditions, now=now)
        if not self._is_trusting():
            asks = self._asking(now)
            fate = await parts.store.write(lambda tx: propose_definition(tx, checked, asks, now=now))
            if isinstance(fate, Waits):
                raise AwaitsPerson(fate)
            if not fate:
                await parts.store.write(lambda tx: note_definition(tx, slug, digest, value.get("enabled")))
                return
        put: Put = await parts.store.write(
            lambda tx: take_definition(
                tx, checked, digest=digest, enabled=value.get("enabled"), hooks=parts.hooks, now=now
            )
        )
        parts.compilations.keep(put.compiled)
        notes = "".join(f"; {warning}" for warning in checked.warnings)
        if put.is_created:
            self._tell(Report("created", f"a new schedule{notes}", slug, DEFINITION))
        elif put.is_changed or definition.enabled is not None:
            self._tell(Report("edited", f"applied as version {put.version}{notes}", slug, DEFINITION))

    async def _take_last_run(self, slug: str, value: Any, digest: str, *, before: Sequence[KnownText]) -> None:
        now = self._now
        edit = last_run_of(value, digest, before, now=now)
        if edit.is_forced and not self._is_trusting():
            edit = await self._approved(slug, edit, now)
        taken = await self._parts.store.write(lambda tx: take_last_run(tx, slug, edit, now=now))
        if edit.is_session_changed:
            session = "a new session" if edit.session_id is None else f"session {edit.session_id}"
            self._tell(Report("adopted", f"continues with {session}", slug, LAST_RUN))
        if taken.run_id is not None:
            self._tell(Report("forced", f"nextRun was set to the past: run {taken.run_id}", slug, LAST_RUN))
        if taken.refusal is not None:
            self._tell(
                Report("refused", f"nextRun was set to the past, and nothing runs: {taken.refusal}", slug, LAST_RUN)
            )

    async def _approved(self, slug: str, edit: LastRunEdit, now: Instant) -> LastRunEdit:
        """The edit, if an agent may not have written it. A run that was approved has been started already."""
        parts, asks, written = self._parts, self._asking(now), str(edit.written.said.get("nextRun"))

        def ask(tx: Tx) -> Waits | bool:
            schedule = tx.schedules.by_slugs([slug]).get(slug)
            if schedule is None:
                return True
            checked = check(decode_definition(schedule.definition), parts.conditions, now=now)
            return propose_run(tx, slug, written, checked, asks, now=now)

        fate = await parts.store.write(ask)
        if isinstance(fate, Waits):
            raise AwaitsPerson(fate)
        return edit if fate else edit._replace(is_forced=False)

    def _asking(self, now: Instant) -> Asking:
        parts, terms = self._parts, self._parts.self_scheduling.value
        ask = asking(terms.approvers, parts.apply, terms=parts.terms.value, now=now)
        since = now if self._changed_since is None else min(now, self._changed_since)
        return Asking(parts.hooks.keepers, socket.gethostname(), since - AFTER_RUN - self.lag, terms, ask)

    def _has_settled(self, place: Place, file: MirrorFile) -> bool:
        """Whether the file has been unchanged for a while; if not, it is checked again later."""
        monotonic = self._parts.clock.read().monotonic
        digest, since = self._settling.get(place, ("", monotonic))
        if digest == file.digest and monotonic - since >= SETTLE:
            return True
        if digest != file.digest:
            self._settling[place] = (file.digest or "", since := monotonic)
        self.later[place[0]] = since + SETTLE
        return False

    def _refuse(self, place: Place, digest: str, message: str, *, said: str | None = None) -> None:
        refusal = Refusal(digest, message)
        if self.refusals.get(place) != refusal:
            self.refusals[place] = refusal
            self._tell(Report("refused", said or message.replace("\n", "; "), place[0], place[1] or None))

    def _forgive(self, place: Place) -> None:
        self._settling.pop(place, None)
        if self.refusals.pop(place, None) is not None:
            self._tell(Report("recovered", "valid again", place[0], place[1] or None))

    # --- writing -----------------------------------------------------------------------------------------------------

    async def _write_all(
        self, slugs: Sequence[str], looked: Mapping[str, FolderContents], stored: Mapping[str, Stored]
    ) -> None:
        """Write outdated files. New digests are stored before the write, old ones are dropped after it."""
        writings: list[FileWrite] = []
        notes: list[FileWrite] = []
        removals: list[Removal] = []
        states: dict[str, dict[str, tuple[KnownText, ...]]] = {}
        for slug in slugs:
            look, kept = looked[slug], stored[slug]
            if look.problem is not None:
                continue
            notes += self._notes(slug, look, kept)
            if kept.texts is None:
                if kept.known:
                    removals.append(Removal(slug, _ours(look, kept)))
                continue
            for name, text in kept.texts.items():
                self._plan(slug, name, text, look, kept, writings, states)
        await self._remember({slug: states[slug] for slug in {write.slug for write in writings}})
        problems = await self._disk(lambda: self._folder.write([*writings, *notes])) if writings or notes else []
        for write, problem in zip(writings, problems, strict=False):
            if problem is None:
                states[write.slug][write.name] = states[write.slug][write.name][-1:]
            elif not problem:
                self.later[write.slug] = self._parts.clock.read().monotonic + SOON
        problems += await self._disk(lambda: self._folder.remove(removals)) if removals else []
        await self._remember(states | {removal.slug: {} for removal in removals})
        self._note_trouble([*writings, *notes, *removals], problems)

    def _plan(
        self,
        slug: str,
        name: str,
        text: Text,
        looked: FolderContents,
        stored: Stored,
        writings: list[FileWrite],
        states: dict[str, dict[str, tuple[KnownText, ...]]],
    ) -> None:
        """What to do with one file of a schedule that has files."""
        if _is_edited(looked, stored, name):
            return
        digest, known = looked.files[name].digest, stored.known.get(name, ())
        if digest != text.written.digest:
            writings.append(FileWrite(slug, name, text.content, digest))
            state = (*(earlier for earlier in known if earlier.digest == digest), text.written)
        elif known != (text.written,):
            state = (text.written,)
        else:
            return
        states.setdefault(slug, dict(stored.known))[name] = state

    def _notes(self, slug: str, looked: FolderContents, stored: Stored) -> list[FileWrite]:
        """Write the error files beside refused files, and remove others."""
        notes: list[FileWrite] = []
        for name in FILES:
            refusal, there = self.refusals.get((slug, name)), looked.errors.get(name)
            if refusal is not None and refusal.digest == looked.files[name].digest and _is_edited(looked, stored, name):
                content = error_text(name, refusal.message)
                if there != digest_of(content):
                    notes.append(FileWrite(slug, error_name(name), content, None, is_guarded=False))
            elif not _is_edited(looked, stored, name):
                self._forgive((slug, name))
                if there is not None:
                    notes.append(FileWrite(slug, error_name(name), None, None, is_guarded=False))
        return notes

    def _note_trouble(self, done: Sequence[FileWrite | Removal], problems: Sequence[str | None]) -> None:
        """Report a full disk once, not once for each of a thousand files; likewise its end."""
        failed = [(write, problem) for write, problem in zip(done, problems, strict=True) if problem]
        if failed:
            write, problem = failed[0]
            if problem != self.trouble:
                name = write.name if isinstance(write, FileWrite) else DEFINITION
                self._tell(Report("trouble", f"cannot be written, will be retried: {problem}", write.slug, name))
            self.trouble = problem
        elif done and self.trouble is not None:
            self.trouble = None
            self._tell(Report("recovered", "definition files can be written again"))

    @property
    def _now(self) -> Instant:
        return self._parts.clock.read().now


def _digests(stored: Stored) -> dict[str, set[str]]:
    """By file name, the digests of an unedited file."""
    digests = {name: {earlier.digest for earlier in stored.known.get(name, ())} for name in FILES}
    for name, text in (stored.texts or {}).items():
        digests[name].add(text.written.digest)
    return digests


def _is_edited(looked: FolderContents, stored: Stored, name: str) -> bool:
    digest = looked.files[name].digest
    return digest is not None and digest not in _digests(stored)[name]


def _ours(looked: FolderContents, stored: Stored) -> dict[str, str]:
    digests = {name: looked.files[name].digest for name in FILES}
    return {name: digest for name, digest in digests.items() if digest and not _is_edited(looked, stored, name)}
