"""What runs of schedules perform."""

from collections.abc import Callable
from typing import TypeAlias

from wakeful.core.run.runs import Run, idempotency_key, occurrence_key
from wakeful.core.schedule.actions import Call
from wakeful.core.schedule.pre_check import CHECK_TIMEOUT, CheckSpec
from wakeful.core.time.instants import MINUTE
from wakeful.features.schedules.checking import spec_of
from wakeful.features.schedules.compiled import Broken, Compiled
from wakeful.ports.action import Fire
from wakeful.ports.claims import Claim
from wakeful.ports.handlers import Job

# The URL for a run's receipt; None if this process does not listen.
ReceiptUrl: TypeAlias = Callable[[int], str | None]


class Jobs:
    """Makes jobs for the runs of one store."""

    def __init__(self, store_id: str, receipt_url: ReceiptUrl | None = None) -> None:
        self._store_id = store_id
        self._receipt_url = receipt_url

    def of(self, run: Run, compiled: Compiled | Broken) -> Job | str:
        """What the run performs next; a string says why it cannot be performed."""
        if isinstance(compiled, Broken):
            return compiled.reason
        key = idempotency_key(self._store_id, run)
        definition, spec = compiled.model, spec_of(run, compiled.model)
        fire = Fire.of(run, compiled.slug, key, self._receipt(run.run_id, spec))
        if isinstance(spec, CheckSpec):
            return Job(spec, fire, CHECK_TIMEOUT + MINUTE, "retry")
        if definition.budget is not None:
            fire = fire._replace(cost_max=definition.budget.per_run)
        return Job(spec, fire, definition.timeout, compiled.policy.on_crash)

    def of_plain(self, claim: Claim) -> Job:
        """What a run performs that takes the plain path: its first attempt."""
        compiled: Compiled = claim.compiled
        planned_at, model = claim.batch.planned_at, compiled.model
        key = occurrence_key(self._store_id, claim.schedule_id, planned_at)
        receipt = self._receipt(claim.run_id, model.action)
        fire = Fire(
            claim.run_id, claim.schedule_id, compiled.slug, planned_at, claim.batch.due_at, "schedule", 1, key, receipt
        )
        return Job(model.action, fire, model.timeout, compiled.policy.on_crash)

    def _receipt(self, run_id: int, spec: object) -> str | None:
        """A function that is called in this process has no use for a receipt, and signing one takes a while."""
        if self._receipt_url is None or (isinstance(spec, Call) and spec.isolate is None):
            return None
        return self._receipt_url(run_id)
