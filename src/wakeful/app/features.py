"""Plugging in the features that every app has."""

from wakeful.app.bootstrap import FeatureContext
from wakeful.features.workflows.feature import Workflows
from wakeful.ports.handlers import FeatureHooks


async def plug_workflows(workflows: Workflows, context: FeatureContext) -> FeatureHooks:
    """Workflows, on the ground of this app."""
    return workflows.plug(
        context.store,
        context.clock,
        store_id=context.store_id,
        default_zone=lambda: context.default_zone,
        every_min=lambda: context.terms.value.limits.every_min,
        ring_bell=context.ring_bell,
        listener=context.listener,
    )
