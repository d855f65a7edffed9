"""The composition root: everything is made and plugged together here, and nowhere else."""

from wakeful.app.bootstrap.assembling import Agents, assemble, assemble_with, plugged
from wakeful.app.bootstrap.changing import agents_of, change, change_agents
from wakeful.app.bootstrap.looking import Look, StoreRefused, looking
from wakeful.app.bootstrap.opening import POLL, VIRTUAL_TIME, Opened, open_store
from wakeful.app.bootstrap.parts import FeatureContext, MakeFeature, Parts
from wakeful.app.bootstrap.zones import replan_if_zones_changed, resolve_zone, zone_rules

__all__ = [
    "POLL",
    "VIRTUAL_TIME",
    "Agents",
    "FeatureContext",
    "Look",
    "MakeFeature",
    "Opened",
    "Parts",
    "StoreRefused",
    "agents_of",
    "assemble",
    "assemble_with",
    "change",
    "change_agents",
    "looking",
    "open_store",
    "plugged",
    "replan_if_zones_changed",
    "resolve_zone",
    "zone_rules",
]
