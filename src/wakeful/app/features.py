"""Plugging in the features that every app has."""

from wakeful.app.bootstrap import FeatureContext
from wakeful.features.heartbeat.agent_runs import BudgetNote, no_note
from wakeful.features.heartbeat.feature import HeartbeatFeature
from wakeful.features.workflows.feature import Workflows
from wakeful.ports.handlers import FeatureHooks


async def plug_heartbeat(
    heartbeat: HeartbeatFeature, context: FeatureContext, *, budget_note: BudgetNote = no_note
) -> FeatureHooks:
    """Plug the heartbeat into an app."""
    return await heartbeat.plug(
        store=context.store,
        clock=context.clock,
        store_id=context.store_id,
        actions=context.actions,
        receipt_url=(lambda _: None) if context.receipts is None else context.receipts.url,
        ring_bell=context.ring_bell,
        apply=context.apply,
        node=context.node,
        budget_note=budget_note,
    )


async def plug_workflows(workflows: Workflows, context: FeatureContext) -> FeatureHooks:
    """Plug workflows into an app."""
    return workflows.plug(
        context.store,
        context.clock,
        store_id=context.store_id,
        default_zone=lambda: context.terms.value.default_zone,
        every_min=lambda: context.terms.value.limits.every_min,
        ring_bell=context.ring_bell,
        listener=context.listener,
        process=context.identity,
    )
