"""All of `wakeful.toml` as one value, and the checks of several tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from wakeful.config import tables
from wakeful.config.agents import AGENTS, Agent, is_unpriced, without_cost
from wakeful.config.channels import CHANNELS, AnyChannel, InboxChannel
from wakeful.config.kinds import texts
from wakeful.config.kinds.lists import listed
from wakeful.config.places import dotted
from wakeful.config.plugins import PACKAGE
from wakeful.config.slots import SLOTS, AnySlot, Quota
from wakeful.config.table import NamedTables, described_table, plain_table, read_table, setting
from wakeful.core.description import Object
from wakeful.core.fields import Fields, shortened
from wakeful.core.self_scheduling.slugs import namespace

RESERVED_CHANNELS: Final = {"last": "the channel of the last interaction"}
DEFAULT_AGENT: Final = "default"
"""The agent that always exists: echo, unless the file configures it."""
INBOX: Final = "inbox"
SLOT_NAME: Final = texts.name(32)
_MODEL_NAME: Final = texts.text("name of a model", most=200, example='"some-model"')

ENTRIES: Final[Mapping[str, NamedTables]] = {
    "tokens": tables.TOKENS,
    "agents": AGENTS,
    "hooks": tables.HOOKS,
    "channels": CHANNELS,
    "slots": SLOTS,
    "prices": tables.PRICES,
}
"""The tables that contain named tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All of `wakeful.toml`."""

    plugins: tuple[str, ...] = setting(
        listed(PACKAGE, "list of names of packages", most=50, distinct=True), "packages whose plugins are loaded", []
    )
    server: tables.Server = plain_table(tables.SERVER)
    tokens: Mapping[str, tables.Token] = setting(tables.TOKENS.kind(texts.name()), "further API tokens", {})
    store: tables.Store = plain_table(described_table(tables.Store))
    node: tables.Node = plain_table(described_table(tables.Node))
    schedules: tables.Schedules = plain_table(described_table(tables.Schedules))
    limits: tables.Limits = plain_table(described_table(tables.Limits))
    agents: Mapping[str, Agent] = setting(AGENTS.kind(texts.name(), (DEFAULT_AGENT,)), "agents", {})
    heartbeat: tables.Heartbeat = plain_table(tables.HEARTBEAT)
    hooks: Mapping[str, tables.Hook] = setting(tables.HOOKS.kind(texts.name()), "webhooks", {})
    delivery: tables.Delivery = plain_table(described_table(tables.Delivery))
    channels: Mapping[str, AnyChannel] = setting(CHANNELS.kind(texts.name(reserved=RESERVED_CHANNELS)), "channels", {})
    alerts: tables.Alerts = plain_table(described_table(tables.Alerts))
    budgets: tables.Budgets = plain_table(described_table(tables.Budgets))
    prices: Mapping[str, tables.Price] = setting(tables.PRICES.kind(_MODEL_NAME), "prices of models", {})
    self_scheduling: tables.SelfScheduling = plain_table(described_table(tables.SelfScheduling))
    quota: Quota = plain_table(described_table(Quota))
    slots: Mapping[str, AnySlot] = setting(SLOTS.kind(SLOT_NAME), "quota slots", {})
    workflows: tables.Workflows = plain_table(described_table(tables.Workflows))
    exclude: tables.ExcludeTable = plain_table(described_table(tables.ExcludeTable))
    log: tables.Log = plain_table(described_table(tables.Log))
    otel: tables.Otel = plain_table(described_table(tables.Otel))


def _check(fields: Fields, given: Mapping[str, Any]) -> None:
    """What involves several tables; those in which something is wrong are not in `given`."""
    _check_agents(fields, given.get("agents", {}))
    channels, alerts, quota, slots = (given.get(name) for name in ("channels", "alerts", "quota", "slots"))
    if channels is not None and INBOX in channels and not isinstance(channels[INBOX], InboxChannel):
        fields.fail(f"channels.{INBOX}", 'is always the page; choose another name, or write type = "inbox"')
        channels = None
    if channels is not None and alerts is not None:
        _check_channel(fields, alerts.channel, {*RESERVED_CHANNELS, INBOX, *channels})
    _check_budgets(fields, given)
    if quota is not None and slots is not None and len(slots) > quota.slots_max:
        message = f"has {len(slots)} slots, and quota.slots_max is {quota.slots_max}; raise it, or remove some"
        fields.fail("slots", message)


def _check_agents(fields: Fields, agents: Mapping[str, Agent]) -> None:
    """Two agents must not share the slugs of their schedules."""
    owners: dict[str, str] = {}
    for name in agents:
        first = owners.setdefault(namespace(name), name)
        if first != name:
            message = f"its schedules would have the prefix '{namespace(name)}', as those of '{first}'; rename one"
            fields.fail(f"agents.{dotted((name,))}", shortened(message))
            return


def _check_channel(fields: Fields, channel: str, known: set[str]) -> None:
    if channel not in known:
        named = ", ".join(sorted(known))
        message = f"there is no channel '{channel}'; add [channels.{channel}], or name one of {named}"
        fields.fail("alerts.channel", shortened(message))


def _check_budgets(fields: Fields, given: Mapping[str, Any]) -> None:
    """A budget in dollars needs agents whose turns have a known cost, unless a person allows the others."""
    budgets, prices = given.get("budgets"), given.get("prices")
    if budgets is None or prices is None or budgets.unpriced == "allow":
        return
    is_for_all = budgets.day is not None or budgets.month is not None
    unpriced = {
        name: agent
        for name, agent in given.get("agents", {}).items()
        if (is_for_all or agent.budget_day is not None or agent.budget_month is not None) and is_unpriced(agent, prices)
    }
    if unpriced:
        name, agent = next(iter(unpriced.items()))
        limit = "budget_month" if agent.budget_day is None else "budget_day"
        place = "budgets" if is_for_all else f"agents.{dotted((name,))}.{limit}"
        fields.fail(place, shortened(without_cost(unpriced)))


SETTINGS: Final = described_table(Settings, _check)


def plain_tables() -> Iterator[tuple[str, Object[Any]]]:
    """The tables that are no entries, by name."""
    return ((field.name, inner) for field in SETTINGS for inner in field.kind.inner)


def tables_with(name: str) -> list[str]:
    """The plain tables that have a key of this name."""
    return [f"[{section}]" for section, described in plain_tables() if name in described.names]


def read_settings(fields: Fields) -> Settings | None:
    """All of a file; None if something is wrong with it."""
    named = [f"[{field.name}]" for field in SETTINGS if field.kind.inner or field.name in ENTRIES]
    return read_table(SETTINGS, fields, known=f"the tables are {', '.join(named)}")


def agent_names(data: Mapping[str, Any]) -> frozenset[str]:
    """The agents named in a file, including invalid ones: a reference to one of them is not another error."""
    named = data.get("agents")
    return frozenset({DEFAULT_AGENT, *(named if isinstance(named, Mapping) else ())})
