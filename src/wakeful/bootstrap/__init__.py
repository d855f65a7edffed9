"""The composition root: everything is made and plugged together here, and nowhere else."""

from wakeful.bootstrap.assembling import Agents, assemble, assemble_with, plugged
from wakeful.bootstrap.changing import agents_of, change, change_agents
from wakeful.bootstrap.looking import Look, StoreRefused, looking
from wakeful.bootstrap.opening import POLL, VIRTUAL_TIME, Opened, open_store
from wakeful.bootstrap.parts import Ground, MakeFeature, Parts
from wakeful.bootstrap.zones import replan_if_zones_changed, resolve_zone, zone_rules

__all__ = [
    "POLL",
    "VIRTUAL_TIME",
    "Agents",
    "Ground",
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
