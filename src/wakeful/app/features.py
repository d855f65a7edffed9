"""Plugging in the features that every app has."""

from wakeful.app.bootstrap import Ground
from wakeful.features.workflows.feature import Workflows
from wakeful.ports.handlers import Plug


async def plug_workflows(workflows: Workflows, ground: Ground) -> Plug:
    """Workflows, on the ground of this app."""
    return workflows.plug(
        ground.store,
        ground.clock,
        store_id=ground.store_id,
        default_zone=lambda: ground.default_zone,
        every_min=lambda: ground.terms.value.limits.every_min,
        ring_bell=ground.ring_bell,
        listener=ground.listener,
    )
