"""The composition root: the only place where the parts are created and connected."""

from wakeful.app.bootstrap.assembling import assemble, assemble_with
from wakeful.app.bootstrap.changing import agents_of, change, change_agents
from wakeful.app.bootstrap.cron_rules import replan_if_cron_rules_changed
from wakeful.app.bootstrap.looking import Look, StoreRefused, looking
from wakeful.app.bootstrap.opening import POLL, VIRTUAL_TIME, Opened, open_store
from wakeful.app.bootstrap.parts import Agents, FeatureContext, MakeFeature, Parts, Setup
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
    "Setup",
    "StoreRefused",
    "agents_of",
    "assemble",
    "assemble_with",
    "change",
    "change_agents",
    "looking",
    "open_store",
    "replan_if_cron_rules_changed",
    "replan_if_zones_changed",
    "resolve_zone",
    "zone_rules",
]
