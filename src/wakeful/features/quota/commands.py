"""Commands on slots. Each is a function of a transaction, atomic, and decides under the slot's lock."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from wakeful.config.one_slot import with_secrets_of
from wakeful.core.delivery.incidents import slot_incident
from wakeful.core.errors import FieldError, Invalid
from wakeful.core.fields import shown
from wakeful.core.refusals import Conflict, NotFound
from wakeful.core.run.results import Done, Dropped, Ending, Unconfirmed
from wakeful.core.run.transitions import planned
from wakeful.core.slot.slot import Slot, followed, resumed, with_key
from wakeful.core.slot.wakes import advanced, let_go
from wakeful.core.slot.windows import UsageWindow, exhausted_until, reading_of, slot_name
from wakeful.core.time.instants import Instant
from wakeful.engine.incidents import end_incident, resume_incident
from wakeful.engine.settling import conclude
from wakeful.features.quota.reading import ReadingRecorder
from wakeful.features.quota.registry import Defined, SlotRegistry, Unusable
from wakeful.features.quota.reported import ReportedSlot, is_reported, reported_definition
from wakeful.features.quota.rows import DISABLED, WAKE, owner_of, save, silence, tell
from wakeful.features.quota.wake_runs import WakeRuns
from wakeful.features.quota.watch import restarted
from wakeful.ports import events
from wakeful.ports.handlers import EngineHooks
from wakeful.ports.slots import QuotaSlots
from wakeful.ports.store import ALARM_RUN, Alarm, Tx, run_alarm

MANUAL_OPEN: Final = "already has a wake in progress"


class Commands:
    """The commands on slots."""

    def __init__(self, registry: SlotRegistry, keeper: WakeRuns, hooks: EngineHooks) -> None:
        self._registry = registry
        self._keeper = keeper
        self._hooks = hooks

    def sync(self, tx: Tx, *, now: Instant, is_start: bool) -> None:
        """Synchronise the rows with the definitions: add new slots, update changed ones, drop removed ones."""
        known = {slot.name for slot in tx[QuotaSlots].all()}
        fresh = self._registry.names - known
        for name in sorted(fresh):
            tx[QuotaSlots].add_new(name, None, now=now)
        held = tx[QuotaSlots].lock([slot.slot_id for slot in tx[QuotaSlots].all()])
        for slot in sorted(held.values()):
            defined = self._registry.of(slot)
            if isinstance(defined, Defined) and not defined.rules.is_polled:
                tell(tx, slot, events.SLOT_STARTED, "slot-started")  # for the metrics
            elif isinstance(defined, Defined):
                self._follow(tx, slot, defined, now=now, is_start=is_start or slot.name in fresh)
            elif slot.definition is None:
                self._drop(tx, slot, now)
            else:
                tx[QuotaSlots].save_many([slot._replace(error=defined.reason, error_at=now)])
                tell(
                    tx, slot, events.SLOT_INVALID, "slot-invalid", f"slot {slot.name}: {defined.reason}", level="error"
                )

    def put(self, tx: Tx, name: str, data: Mapping[str, Any], *, now: Instant) -> bool:
        """Write a slot defined over REST; returns whether it is new. Raises `Invalid`, `Conflict`."""
        slot = self._editable(tx, name)
        before = {} if slot is None or slot.definition is None else json.loads(slot.definition)
        data = {field: value for field, value in with_secrets_of(data, before).items() if value is not None}
        defined = self._registry.define(name, data)
        text = json.dumps(data, ensure_ascii=False, sort_keys=True)
        if slot is None:
            self._refuse_too_many(tx, name)
            slot = tx[QuotaSlots].add_new(name, text, now=now)
            if slot is None:
                raise Conflict(f"slot {name} was created by someone else at the same time; read it again")
            self._follow(tx, slot, defined, now=now, is_start=True)
            return True
        if slot.definition != text or not self._has_secrets_of(slot, defined):
            slot = slot._replace(definition=text, version=slot.version + 1, updated_at=now)
            self._follow(tx, slot, defined, now=now, is_start=False)
        return False

    def _has_secrets_of(self, slot: Slot, defined: Defined) -> bool:
        """Whether a slot is in use as it is defined. The file of a key may have changed since it was read."""
        held = self._registry.of(slot)
        return isinstance(held, Defined) and held.written == defined.written

    def patch(self, tx: Tx, name: str, changes: Mapping[str, Any], *, now: Instant) -> None:
        """Change some fields; null resets a field to its default. A key is replaced as a whole: a mix of two key
        references would be meaningless."""
        slot = self._editable(tx, name)
        if slot is None:
            raise NotFound(f"there is no slot {shown(name)}")
        before: dict[str, Any] = json.loads(slot.definition or "{}")
        merged = {**before, **changes}
        if isinstance(changes.get("env"), Mapping) and isinstance(before.get("env"), Mapping):
            env = {**before["env"], **changes["env"]}
            merged["env"] = {name: value for name, value in env.items() if value is not None}
        self.put(tx, name, merged, now=now)

    def remove(self, tx: Tx, name: str, *, now: Instant) -> None:
        """Remove a slot; its ledger rows stay. An agent's slot comes back with the next report."""
        self._refuse_settings(name)
        slot = _lock(tx, name)
        if slot is None:
            raise NotFound(f"there is no slot {shown(name)}")
        self._drop(tx, slot, now)

    def report(
        self, tx: Tx, recorder: ReadingRecorder, agent: str, windows: Sequence[UsageWindow], now: Instant
    ) -> None:
        """An agent's turn reported its usage windows: a reading of the agent's slot, which is added if missing."""
        reading, name = reading_of(windows, now), slot_name(agent)
        if reading is None:
            return
        slot = _lock(tx, name) or tx[QuotaSlots].add_new(name, reported_definition(agent), now=now)
        defined = None if slot is None else self._registry.of(slot)
        if slot is None or not isinstance(defined, Defined) or defined.rules.is_polled:
            return  # someone's own slot has this name, or another node is adding it
        until = exhausted_until(windows, now)
        recorder.note_report(tx, slot, defined.rules, reading, exhausted_until=until, now=now)

    def wake(self, tx: Tx, name: str, *, now: Instant) -> int:
        """Send one wake now, without a pre-check: a person requested it. Returns the run's id.

        A wake that waits to be resent is sent now instead of adding another."""
        slot, defined = self._held(tx, name)
        if isinstance(defined.written, ReportedSlot):
            raise Conflict(f"slot {name} cannot be woken; a turn of agent {defined.written.agent} starts its window")
        if not defined.provider.can_wake:
            cure = "wake_url or wake_argv in the settings" if name in self._registry.names else "wakeUrl or wakeArgv"
            raise Conflict(f"slot {name} has no wake configured; set {cure}")
        if slot.wake_run_id is not None:
            if slot.unsent and _hurry(tx, slot, now):
                return slot.wake_run_id
            raise Conflict(f"slot {name} {MANUAL_OPEN}, run {slot.wake_run_id}; wait for it to end")
        (run_id,) = tx.runs.reserve_ids(1)
        run = planned(
            run_id=run_id,
            kind=WAKE,
            schedule_id=owner_of(tx, name),
            version=slot.version,
            planned_at=now,
            due_at=now,
            trigger="manual",
            lane=None,
        )
        tx.runs.add_many([run])
        tx.alarms.set_many([Alarm(ALARM_RUN, run_id, now, run.priority, None, 0)])
        self._save(tx, slot._replace(wake_run_id=run_id, last_row_id=run_id), defined, now)
        return run_id

    def poll(self, tx: Tx, name: str, *, now: Instant) -> None:
        """Read the quota now."""
        slot, defined = self._held(tx, name)
        if isinstance(defined.written, ReportedSlot):
            raise Conflict(f"slot {name} cannot be polled: agent {defined.written.agent} reports it with its turns")
        self._save(tx, slot._replace(poll_asked_at=now), defined, now)

    def resume(self, tx: Tx, name: str, *, now: Instant) -> None:
        """Re-enable polling and waking, reset the error counts, and send a wake that waits to be resent."""
        slot, defined = self._held(tx, name)
        if slot.unsent:
            _hurry(tx, slot, now)
        after = resumed(slot, defined.rules, now=now)
        resume_incident(tx, slot_incident(name))
        tell(tx, after, events.SLOT_RESUMED, "slot-resumed", f"slot {name}: resumed")
        self._save(tx, after, defined, now)

    def check_up(self, tx: Tx, *, now: Instant) -> int:
        """Find and restart what is stuck; returns how many slots needed it (see `watch`)."""
        held = tx[QuotaSlots].lock([slot.slot_id for slot in tx[QuotaSlots].all()])
        count = 0
        for slot in sorted(held.values()):
            defined = self._registry.of(slot)
            if isinstance(defined, Unusable):
                continue
            after = restarted(tx, slot, defined, now=now)
            if after is not None:
                count += 1
                tell(
                    tx,
                    after,
                    events.SLOT_RESTARTED,
                    "slot-restarted",
                    f"slot {slot.name}: was stuck, restarted",
                    level="warn",
                )
                self._save(tx, after, defined, now)
        return count

    def close_run(self, tx: Tx, slot: Slot, ending: Done | Unconfirmed, now: Instant) -> Slot:
        """End the run whose wake was being confirmed, open or closed without proof; returns the slot without it."""
        run = None if slot.sent_run_id is None else tx.runs.lock([slot.sent_run_id]).get(slot.sent_run_id)
        may_prove = isinstance(ending, Done) and run is not None and run.outcome in ("unconfirmed", "unknown")
        if run is None or run.stuck or not (run.outcome == "waiting" or may_prove):
            return slot
        self._conclude(tx, slot, ending, run.run_id, now)
        return slot._replace(wake_run_id=None) if slot.wake_run_id == run.run_id else slot

    def drop_wake(self, tx: Tx, slot: Slot, reason: str, now: Instant) -> Slot:
        """Give up what the slot has not sent yet and what it waits to see confirmed, because it was disabled or
        removed. A wake that is being sent ends by itself, and one that a person requested is sent all the same.

        A run that was claimed and has not recorded `sent` is closed under its attempt, which cannot record it any
        more: no wake begins after this commit."""
        run = None if slot.wake_run_id is None else tx.runs.lock([slot.wake_run_id]).get(slot.wake_run_id)
        is_manual = run is not None and run.trigger == "manual"
        if run is None or not (run.outcome == "waiting" or (run.outcome == "running" and run.rung == "claimed")):
            return slot if is_manual else let_go(slot)
        if is_manual and slot.sent_run_id != run.run_id:
            return slot
        self._conclude(tx, slot, Dropped(reason), run.run_id, now)
        defined = self._registry.of(slot)
        if isinstance(defined, Defined):  # the row says what became of what was due: it is not due again
            slot = advanced(slot, defined.rules, now=now)
        return let_go(slot)._replace(wake_run_id=None)

    def _follow(self, tx: Tx, slot: Slot, defined: Defined, *, now: Instant, is_start: bool) -> None:
        was = slot
        slot = with_key(slot, defined.provider.mark, now=now)
        slot = followed(slot, defined.rules, now=now)
        if is_start:
            slot = resumed(slot, defined.rules, now=now, is_start=True)
            tell(
                tx,
                slot,
                events.SLOT_STARTED,
                "wake.scheduler.task-started",
                f"slot {slot.name}: wake scheduler started",
            )
            tell(
                tx,
                slot,
                events.SLOT_POLLER_STARTED,
                "quota-poller.task-started",
                f"slot {slot.name}: quota poller started",
            )
        elif was.modes != slot.modes or was.key_mark != slot.key_mark:
            text = f"slot {slot.name}: wake scheduler detected config change"
            tell(tx, slot, events.SLOT_CHANGED, "wake.scheduler.config-changed", text)
        if not defined.rules.enabled:
            slot = self.drop_wake(tx, slot, DISABLED, now)
            tell(tx, slot, events.SLOT_OFF, "wake.scheduler.config-disabled")
        self._save(tx, slot, defined, now)

    def _drop(self, tx: Tx, slot: Slot, now: Instant) -> None:
        self.drop_wake(tx, slot, "removed", now)
        silence(tx, slot)
        tx[QuotaSlots].remove(slot.slot_id)
        end_incident(tx, slot_incident(slot.name), now=now)
        tell(tx, slot, events.SLOT_STOPPED, "wake.scheduler.task-stopped", f"slot {slot.name}: removed")

    def _conclude(self, tx: Tx, slot: Slot, ending: Ending, run_id: int, now: Instant) -> None:
        run = tx.runs.lock([run_id])[run_id]
        conclude(tx, self._hooks, self._keeper, {run.schedule_id: slot}, [(run, ending)], now=now)

    def _held(self, tx: Tx, name: str) -> tuple[Slot, Defined]:
        slot = _lock(tx, name)
        if slot is None:
            raise NotFound(f"there is no slot {shown(name)}")
        defined = self._registry.of(slot)
        if isinstance(defined, Unusable):
            raise Conflict(f"slot {name} cannot be used: {defined.reason}")
        return slot, defined

    def _editable(self, tx: Tx, name: str) -> Slot | None:
        """The slot, if it may be changed over REST."""
        self._refuse_settings(name)
        slot = _lock(tx, name)
        defined = None if slot is None else self._registry.of(slot)
        if isinstance(defined, Defined) and isinstance(defined.written, ReportedSlot):
            raise Conflict(f"slot {name} is what agent {defined.written.agent} reports; it has nothing to change")
        return slot

    def _refuse_settings(self, name: str) -> None:
        if name in self._registry.names:
            raise Conflict(f"slot {name} is defined in {self._registry.config.file}; change it there")

    def room(self, tx: Tx) -> tuple[int, int]:
        """How many more slots may be written over REST, and how many there may be in all."""
        count, most = self._count(tx)
        return max(0, most - count), most

    def _count(self, tx: Tx) -> tuple[int, int]:
        configured = (
            slot for slot in tx[QuotaSlots].all() if slot.definition is None or not is_reported(slot.definition)
        )
        return len({slot.name for slot in configured} | self._registry.names), self._registry.config.quota.slots_max

    def _refuse_too_many(self, tx: Tx, name: str) -> None:
        count, most = self._count(tx)
        if count >= most:
            message = f"there are {count} slots, and quota.slots_max is {most}; raise it, or remove one"
            raise Invalid(FieldError("name", message))

    def _save(self, tx: Tx, slot: Slot, defined: Defined, now: Instant) -> None:
        save(tx, slot, defined.rules, now=now, has_statistics=defined.provider.has_statistics)


def _hurry(tx: Tx, slot: Slot, now: Instant) -> bool:
    """Bring the next attempt of its waiting run forward; False if it is not waiting."""
    run = None if slot.wake_run_id is None else tx.runs.lock([slot.wake_run_id]).get(slot.wake_run_id)
    if run is None or run.outcome != "waiting":
        return False
    tx.runs.save_many([run._replace(next_attempt_at=now)])
    tx.alarms.set_many([run_alarm(run, now)])
    return True


def _lock(tx: Tx, name: str) -> Slot | None:
    known = tx[QuotaSlots].by_names([name]).get(name)
    return None if known is None else tx[QuotaSlots].lock([known.slot_id]).get(known.slot_id)
