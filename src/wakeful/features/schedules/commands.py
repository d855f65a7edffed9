"""Commands on schedules. Each is a function of a transaction, atomic, and reads what it decides on under the lock of
the schedule's cadence."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from wakeful.core.delivery.incidents import WELL, failing
from wakeful.core.errors import Invalid
from wakeful.core.refusals import Conflict, NotFound
from wakeful.core.run.effects import Prove
from wakeful.core.run.results import Done, Dropped, Ending, Failed
from wakeful.core.run.settlement import DROPPED, REMOVED
from wakeful.core.run.transitions import planned
from wakeful.core.schedule.cadence import Cadence, State, begin, due_at, is_turned, replan, resume
from wakeful.core.schedule.definition import Definition
from wakeful.core.schedule.definition_json import Encoded, encode_definition, encode_many, under_slug
from wakeful.core.schedule.health import BY_PERSON
from wakeful.core.time.instants import Instant
from wakeful.core.time.timing import Cron, Every, Times
from wakeful.engine.incidents import end_incident, resume_incident
from wakeful.engine.planning import taken_ahead
from wakeful.engine.settling import conclude
from wakeful.features.schedules.alarms import alarm_of, decided, record
from wakeful.features.schedules.checks import (
    Checked,
    refusal_of,
    refuse_excluded,
    refuse_past,
    refuse_short_lateness,
    refuse_unknown,
)
from wakeful.features.schedules.compiled import KIND, Compiled, agent_of, compile_definition, compile_new, read_stored
from wakeful.features.schedules.copies import leave_copies, open_ids
from wakeful.features.schedules.resets import followed, informed
from wakeful.ports.handlers import EngineHooks
from wakeful.ports.plans import Beginning
from wakeful.ports.store import ALARM_RUN, NewSchedule, Schedule, Tx, run_alarm


class Put(NamedTuple):
    """The result of writing a definition."""

    schedule_id: int
    slug: str
    version: int
    is_created: bool
    is_changed: bool
    compiled: Compiled
    row: NewSchedule | None = None  # if it is new
    beginning: Beginning | None = None  # if it is new; shared by all that start in the same way


def put_many(
    tx: Tx, checked: Sequence[Checked], *, hooks: EngineHooks, now: Instant, slugs: Sequence[str] | None = None
) -> list[Put | Invalid]:
    """Write definitions, under `slugs` if they are given: new ones in one batch, existing ones as edits. A refused
    definition does not affect the others."""
    if slugs is None:
        slugs = [item.definition.slug for item in checked]
    encoded = encode_many((item.definition for item in checked), slugs)
    fates: dict[int, Put | Invalid] = _refused(tx, checked, encoded, hooks, now)
    valid = [index for index in range(len(checked)) if index not in fates]
    if fates:
        encoded = [encoded[index] for index in valid]
    rows = _rows(encoded, now)
    ids = tx.schedules.add_many(rows)
    known = [index for index, schedule_id in zip(valid, ids, strict=True) if schedule_id is None]
    new = [(index, row) for index, row, key in zip(valid, rows, ids, strict=True) if key is not None]
    created = compile_new((key, definition) for key, definition in zip(ids, encoded, strict=True) if key is not None)
    begun = _begin_all(tx, created, now)
    for (index, row), compiled in zip(new, created, strict=True):
        key = compiled.schedule_id
        fates[index] = Put(key, row.slug, 1, True, True, compiled, row, begun[key])
    # In a stored definition a single instant may have passed, or a slot been removed; then nothing is changed.
    invalid = [index for index, fate in fates.items() if isinstance(fate, Invalid)]
    # In slug order, so that two nodes registering the same schedules cannot wait for one another.
    for slug, index in sorted((slugs[index], index) for index in known + invalid):
        own = checked[index]._replace(definition=under_slug(checked[index].definition, slug))
        fates[index] = _edit_or_refuse(tx, own, fates.get(index), hooks, now)
    return [fates[index] for index in range(len(checked))]


def _refused(
    tx: Tx, checked: Sequence[Checked], encoded: Sequence[Encoded], hooks: EngineHooks, now: Instant
) -> dict[int, Put | Invalid]:
    """The definitions that are refused at this time, by position. What is accepted for one is accepted for those that
    differ from it only in their slugs."""
    refusals: dict[int, Put | Invalid] = {}
    accepted: Definition | None = None
    for index, (item, (_, _, model)) in enumerate(zip(checked, encoded, strict=True)):
        if model is accepted and item.refusal is None:
            continue
        refused = refusal_of(tx, item._replace(definition=model), hooks=hooks, now=now)
        if refused is None:
            accepted = model
        else:
            refusals[index] = refused
    return refusals


def _rows(encoded: Sequence[Encoded], now: Instant) -> list[NewSchedule]:
    rows: list[NewSchedule] = []
    shared: Definition | None = None
    is_zoned = 0
    for slug, text, model in encoded:
        if model is not shared:
            shared, is_zoned = model, _is_zoned(model)
        rows.append(NewSchedule(slug, text, is_zoned, now))
    return rows


def change(
    tx: Tx,
    slug: str,
    patch: Callable[[Schedule, Instant], Checked],
    *,
    hooks: EngineHooks,
    now: Instant,
    if_version: int | None,
) -> Put:
    """Edit one schedule based on its current definition; refused if its version has changed meanwhile."""
    schedule, _ = _hold(tx, slug)
    if if_version is not None and schedule.version != if_version:
        raise Conflict(f"{slug} is at version {schedule.version}, not {if_version}; read it again")
    checked = patch(schedule, now)
    put = _edit(tx, checked, hooks, now)
    if checked.definition.enabled is True:  # same as `resume`, and refused in the same cases
        _refuse_done(slug, tx.cadences.lock([schedule.schedule_id])[schedule.schedule_id])
    return put


def remove(tx: Tx, slug: str, *, hooks: EngineHooks, now: Instant) -> None:
    """Remove a schedule. Its running run ends under a copy of the definition; the ledger stays."""
    schedule, cadence = _hold(tx, slug)
    cadence = _drop_waiting(tx, cadence, "removed", hooks, now)
    leave_copies(tx, cadence, schedule.definition)
    tx.schedules.save_many([schedule._replace(deleted_at=now, updated_at=now)])
    cadence = cadence._replace(state="done", state_reason=REMOVED, state_at=now, next_at=None, trouble=WELL)
    tx.cadences.save_many([cadence])
    tx.alarms.remove_many("schedule", [schedule.schedule_id])
    end_incident(tx, failing(schedule.schedule_id), now=now)


def pause(
    tx: Tx, slug: str, *, hooks: EngineHooks, now: Instant, until: Instant | None = None, reason: str | None = None
) -> None:
    """Start no run until the schedule is resumed; a run in progress finishes."""
    schedule, cadence = _hold(tx, slug)
    if cadence.state not in ("active", "paused"):
        raise Conflict(f"{slug} is {cadence.state}; only an active schedule can be paused")
    cadence = _drop_waiting(tx, cadence, "paused", hooks, now)
    paused_at = cadence.state_at if cadence.state == "paused" else now
    paused = cadence._replace(state="paused", state_reason=reason, state_at=paused_at, resume_at=until)
    _write(tx, cadence, paused, _compiled(schedule))


def disable(tx: Tx, slug: str, *, hooks: EngineHooks, now: Instant) -> None:
    """Disable a schedule until a person resumes it."""
    schedule, cadence = _hold(tx, slug)
    if cadence.state == "disabled":
        return
    cadence = _drop_waiting(tx, cadence, "disabled", hooks, now)
    disabled = cadence._replace(state="disabled", state_reason=BY_PERSON, state_at=now, resume_at=None)
    _write(tx, cadence, disabled, _compiled(schedule))


def resume_schedule(tx: Tx, slug: str, *, now: Instant) -> None:
    """Resume from now: the halt becomes one ledger row, nothing is caught up, the error count is reset."""
    schedule, cadence = _hold(tx, slug)
    resume_incident(tx, failing(schedule.schedule_id))
    if cadence.state == "active":
        tx.cadences.save_many([cadence._replace(consecutive_errors=0)])
        return
    _refuse_done(slug, cadence)
    compiled = _compiled(schedule)
    plan = resume(cadence, informed(tx, compiled.rules, cadence.next_at), now=now, taken=taken_ahead(tx, cadence, now))
    plan = plan._replace(cadence=followed(tx, compiled.rules, plan.cadence))
    record(tx, [decided(plan, compiled, cadence)], now=now)


def acknowledge(tx: Tx, slug: str, *, now: Instant) -> None:
    """Acknowledge a schedule's failure: close the incident; a failed one-shot is then done."""
    schedule, cadence = _hold(tx, slug)
    tx.cadences.save_many([cadence._replace(trouble=WELL)])
    end_incident(tx, failing(schedule.schedule_id), now=now)


def _refuse_done(slug: str, cadence: Cadence) -> None:
    if cadence.state == "done":
        raise Conflict(f"{slug} is done: it has no planned times left; give it a later time first")


def run_now(tx: Tx, slug: str, *, now: Instant) -> int:
    """Run once now, as a separate run with one attempt; the cadence does not change. Returns the run's id."""
    schedule, cadence = _hold(tx, slug)
    if cadence.state == "invalid":
        raise Conflict(f"{slug} cannot run: {cadence.state_reason}")
    if cadence.open_run_id is not None:
        raise Conflict(f"{slug} already has an open run, {cadence.open_run_id}; wait for it to end")
    compiled = _compiled(schedule)
    run_id = tx.runs.reserve_ids(1)[0]
    run = planned(
        run_id=run_id,
        kind=KIND,
        schedule_id=schedule.schedule_id,
        version=schedule.version,
        planned_at=now,
        due_at=now,
        trigger="manual",
        lane=compiled.lane,
        run_on=compiled.run_on,
    )
    tx.runs.add_many([run])
    tx.cadences.save_many([cadence._replace(open_run_id=run_id, last_row_id=run_id)])
    tx.alarms.set_many([run_alarm(run, now)])
    return run_id


def force_once(tx: Tx, slug: str, *, now: Instant) -> int:
    """Run once now because its owner moved `nextRun` into the past; returns the run's id. The cadence does not change.

    This replaces the schedule's own run, so a halted schedule does not run. If a run is waiting, `nextRun` named that
    one: its next attempt is brought forward instead of adding another run."""
    _, cadence = _hold(tx, slug)
    if cadence.state not in ("active", "invalid"):
        raise Conflict(f"{slug} is {cadence.state}; enable it first, or run it by hand")
    waiting = None if cadence.open_run_id is None else tx.runs.lock([cadence.open_run_id])[cadence.open_run_id]
    if waiting is None or waiting.outcome != "waiting":
        return run_now(tx, slug, now=now)
    if waiting.next_attempt_at is None or waiting.next_attempt_at > now:
        tx.runs.save_many([waiting._replace(next_attempt_at=now)])
        tx.alarms.set_many([run_alarm(waiting, now)])
    return waiting.run_id


def adopt_session(tx: Tx, slug: str, session_id: str | None) -> None:
    """Continue with this agent session from the next run on; None starts a new one."""
    _, cadence = _hold(tx, slug)
    if cadence.session_id != session_id:
        tx.cadences.save_many([cadence._replace(session_id=session_id, session_node=None)])


def _begin_all(tx: Tx, created: Sequence[Compiled], now: Instant) -> dict[int, Beginning]:
    """Write the initial cadences and alarms; returns them by schedule. Schedules with the same rules start in the same
    way, which is computed once."""
    together: dict[tuple[int, bool | None, str | None], list[Compiled]] = {}
    for compiled in created:
        key = id(compiled.rules), compiled.model.enabled, compiled.run_on
        together.setdefault(key, []).append(compiled)
    beginnings = [_begin(tx, group, now) for group in together.values()]
    if beginnings:
        tx.cadences.begin_many(beginnings)
    return {schedule_id: beginning for beginning in beginnings for schedule_id in beginning.schedule_ids}


def _begin(tx: Tx, group: Sequence[Compiled], now: Instant) -> Beginning:
    first = group[0]
    state: State = "disabled" if first.model.enabled is False else "active"
    reason = BY_PERSON if state == "disabled" else None
    cadence = begin(first.schedule_id, 1, informed(tx, first.rules), now=now, state=state, reason=reason)
    return Beginning(cadence, due_at(cadence, first.rules), [compiled.schedule_id for compiled in group], first.run_on)


def _edit_or_refuse(
    tx: Tx, checked: Checked, refused: Put | Invalid | None, hooks: EngineHooks, now: Instant
) -> Put | Invalid:
    try:
        return _edit(tx, checked, hooks, now)
    except Invalid as invalid:
        return invalid
    except NotFound:
        return refused if isinstance(refused, Invalid) else Invalid()


def prove_late(tx: Tx, run_id: int, ending: Ending, *, hooks: EngineHooks, now: Instant) -> bool:
    """Apply late proof to a run that was closed without proof; False if there is nothing to change."""
    row = tx.runs.lock([run_id]).get(run_id)
    if row is None or row.outcome not in ("unconfirmed", "unknown") or row.stuck:
        return False
    keeper = hooks.keepers[row.kind]
    locked = keeper.lock(tx, [row])
    run = tx.runs.lock([run_id])[run_id]
    if run.outcome not in ("unconfirmed", "unknown"):
        return False
    conclude(tx, hooks, keeper, locked, [(run, ending)], now=now)
    return True


def prove(tx: Tx, proof: Prove, now: Instant, *, hooks: EngineHooks) -> None:
    """Settle a run that had handed its work to another feature; a run given up meanwhile stays closed. A run that asks
    at this moment what became of it finds in its row that it will not happen (`features.heartbeat.events`)."""
    ending: Ending = Done(reply=proof.reply)
    if proof.dropped is not None:
        ending = Dropped(proof.dropped)
    elif proof.error is not None:
        ending = Failed(proof.error, permanent=True, rung="accepted")
    row = tx.runs.lock([proof.run_id]).get(proof.run_id)
    if row is None:
        return
    if row.outcome == "running" and not isinstance(ending, Done):
        tx.runs.save_many([row._replace(reason=proof.dropped or DROPPED, error=proof.error)])
    elif row.outcome != "waiting":
        if isinstance(ending, Done):
            prove_late(tx, proof.run_id, ending, hooks=hooks, now=now)
    else:
        keeper = hooks.keepers[row.kind]
        locked = keeper.lock(tx, [row])
        run = tx.runs.lock([proof.run_id])[proof.run_id]
        if run.outcome == "waiting":
            conclude(tx, hooks, keeper, locked, [(run, ending)], now=now)


def _edit(tx: Tx, checked: Checked, hooks: EngineHooks, now: Instant) -> Put:
    schedule, cadence = _hold(tx, checked.definition.slug)
    definition = _on_its_grid(checked, schedule)
    text = encode_definition(definition)
    is_changed = text != schedule.definition
    version = schedule.version
    if is_changed:
        version += 1
    compiled = compile_definition(schedule.schedule_id, version, definition)
    if is_changed:
        # Before anything is written, so that one definition in a batch can be refused alone.
        _refuse_edit(schedule, compiled, checked, now)
        refuse_unknown(tx, definition, hooks)
        leave_copies(tx, cadence, schedule.definition)
        tx.schedules.save_many(
            [schedule._replace(definition=text, version=version, is_zoned=_is_zoned(definition), updated_at=now)]
        )
        _apply_edit(tx, schedule, cadence, compiled, now)
        _place_elsewhere(tx, schedule, compiled)
    if definition.enabled is False:
        disable(tx, definition.slug, hooks=hooks, now=now)
    elif definition.enabled is True and cadence.state in ("disabled", "paused"):
        resume_schedule(tx, definition.slug, now=now)
    return Put(schedule.schedule_id, definition.slug, version, False, is_changed, compiled)


def _on_its_grid(checked: Checked, schedule: Schedule) -> Definition:
    """The definition on its current grid: writing the same `every` again without an anchor keeps the grid, so
    registering at each start is harmless."""
    definition = checked.definition
    if not checked.is_anchor_open or not isinstance(definition.timing, Every):
        return definition
    before = read_stored(schedule.schedule_id, schedule.version, schedule.definition)
    if isinstance(before, Compiled) and isinstance(before.model.timing, Every):
        old = before.model.timing
        if old.every == definition.timing.every:
            return replace(definition, timing=replace(definition.timing, anchor=old.anchor))
    return definition


def _apply_edit(tx: Tx, schedule: Schedule, was: Cadence, compiled: Compiled, now: Instant) -> None:
    """Move the cadence to the new version; only a changed timing is replanned."""
    before = read_stored(schedule.schedule_id, schedule.version, schedule.definition)
    cadence = was._replace(version=compiled.version)
    if isinstance(before, Compiled) and agent_of(before) != agent_of(compiled):
        # A session of the previous agent is meaningless to another one.
        cadence = cadence._replace(session_id=None, session_node=None)
    if isinstance(before, Compiled) and before.rules.timing == compiled.rules.timing:
        if cadence.state == "invalid":
            cadence = cadence._replace(state="active", state_reason=None, state_at=now)
        _write(tx, was, cadence, compiled)
        return
    old = before.rules if isinstance(before, Compiled) else compiled.rules
    if cadence.state in ("done", "invalid"):
        cadence = cadence._replace(
            state="active",
            state_reason=None,
            state_at=now,
            planned_through=max(now, cadence.planned_through),
            next_at=None,
        )
    old, new = informed(tx, old, cadence.next_at), informed(tx, compiled.rules)
    plan = replan(cadence, old, new, now=now, taken=taken_ahead(tx, cadence, now))
    record(tx, [decided(plan, compiled, was, gaps_of=(schedule.version, schedule.definition))], now=now)


def _place_elsewhere(tx: Tx, schedule: Schedule, compiled: Compiled) -> None:
    """Let other nodes ring its alarm and begin its waiting runs, if the labels it needs changed. A run that waits would
    otherwise wait for a label that its owner has just replaced."""
    before = read_stored(schedule.schedule_id, schedule.version, schedule.definition)
    if isinstance(before, Compiled) and before.run_on == compiled.run_on:
        return
    cadence = tx.cadences.lock([schedule.schedule_id])[schedule.schedule_id]
    tx.alarms.set_many([alarm_of(cadence, compiled)])
    moved = [run._replace(run_on=compiled.run_on) for run in tx.runs.lock(open_ids(cadence)).values()]
    moved = sorted(run for run in moved if run.outcome == "waiting")
    alarms = tx.alarms.by_refs(ALARM_RUN, [run.run_id for run in moved])
    tx.runs.save_many(moved)
    tx.alarms.set_many([run_alarm(run, alarms[run.run_id].due_at) for run in moved if run.run_id in alarms])


def _refuse_edit(schedule: Schedule, compiled: Compiled, checked: Checked, now: Instant) -> None:
    """Refuse moving a single instant into the past or to an excluded day, and a limit of lateness that is too short.
    What is stored may stay."""
    before = read_stored(schedule.schedule_id, schedule.version, schedule.definition)
    if not (isinstance(before, Compiled) and before.rules.timing == compiled.rules.timing):
        refuse_past(compiled.model, now)
        refuse_excluded(checked)
    elif before.model.exclude != compiled.model.exclude:
        refuse_excluded(checked)
    if not (isinstance(before, Compiled) and before.model.lateness_max == compiled.model.lateness_max):
        refuse_short_lateness(compiled.model)


def _hold(tx: Tx, slug: str) -> tuple[Schedule, Cadence]:
    """The schedule and its cadence, locked."""
    known = tx.schedules.by_slugs([slug]).get(slug)
    if known is None:
        raise NotFound(f"there is no schedule {slug!r}")
    cadence = tx.cadences.lock([known.schedule_id])[known.schedule_id]
    # Read again under the lock: another node may have edited it between the two statements.
    schedule = tx.schedules.by_ids([known.schedule_id])[known.schedule_id]
    if schedule.deleted_at is not None:
        raise NotFound(f"there is no schedule {slug!r}")
    return schedule, cadence


def _drop_waiting(tx: Tx, cadence: Cadence, reason: str, hooks: EngineHooks, now: Instant) -> Cadence:
    """Give up its waiting runs: a halted schedule starts nothing, not even a retry."""
    dropped = [run for run in tx.runs.lock(open_ids(cadence)).values() if run.outcome == "waiting"]
    if not dropped:
        return cadence
    # The queued one first: otherwise it would be promoted only to be given up.
    dropped.sort(key=lambda run: run.run_id != cadence.queued_run_id)
    for run in dropped:
        locked = tx.cadences.lock([cadence.schedule_id])
        conclude(tx, hooks, hooks.keepers[run.kind], locked, [(run, Dropped(reason))], now=now)
    return tx.cadences.lock([cadence.schedule_id])[cadence.schedule_id]


def _write(tx: Tx, before: Cadence, cadence: Cadence, compiled: Compiled) -> None:
    tx.cadences.save_many([cadence], turned=[cadence] if is_turned(before, cadence) else [])
    tx.alarms.set_many([alarm_of(cadence, compiled)])


def _compiled(schedule: Schedule) -> Compiled:
    compiled = read_stored(schedule.schedule_id, schedule.version, schedule.definition)
    if isinstance(compiled, Compiled):
        return compiled
    raise Conflict(f"{schedule.slug} is invalid: {compiled.reason}")


def _is_zoned(definition: Definition) -> int:
    return int(isinstance(definition.timing, Cron | Times))
