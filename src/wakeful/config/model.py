"""The settings model: one frozen table for each table of `wakeful.toml`.

A field's default is written as in the file (`"60m"`) and read by the same reader, so the reference, the file and the
value cannot disagree. Durations become milliseconds, sizes bytes, secrets `Secret`. A check that involves two fields
belongs to the later one: pydantic then runs it even if a third field is wrong, and every error is found in one pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import Field, ValidationInfo, field_validator

from wakeful.config import kinds
from wakeful.config.agents import AGENTS, UNPRICED, Agent, EchoAgent
from wakeful.config.channels import CHANNELS, Channel, InboxChannel
from wakeful.config.check import check_table
from wakeful.config.faults import refusal
from wakeful.config.kinds import setting
from wakeful.config.secrets import Secret, SecretUrl
from wakeful.config.slots import SLOTS, Quota, Slot
from wakeful.config.table import NamedTables, Table
from wakeful.core.schedule.exclude import DATES_MAX
from wakeful.core.schedule.labels import LABELS_MAX
from wakeful.core.self_scheduling.slugs import namespace
from wakeful.core.time.active_hours import ActiveHours
from wakeful.integrations.net.guard import is_loopback

_MODEL_NAME: Final = kinds.text("name of a model", most=200, example='"some-model"')
_PRICE: Final = kinds.amount(0, 100_000, "US dollars per million tokens", "0.60")
RESERVED_CHANNELS: Final = {"last": "the channel of the last interaction"}
DEFAULT_AGENT: Final = "default"
"""The agent that always exists: echo, unless the file configures it."""
INBOX: Final = "inbox"
ACK_TOKEN: Final = "{ack_token}"  # noqa: S105 - a place in a prompt
HEARTBEAT_PROMPT: Final = (
    "Go through what is waiting and act on whatever is due. "
    "If nothing needs a person's attention, answer only {ack_token}."
)


class Server(Table):
    """Where the daemon listens."""

    host: Annotated[str, kinds.host()] = setting("127.0.0.1", says="address to listen on")
    port: Annotated[int, kinds.count(0, 65_535)] = setting(8377, says="port; 0 picks a free one")
    token: Annotated[Secret | None, kinds.secret()] = setting(
        None,
        says="bearer token for callers, instead of the random one in the home folder's `token` file; "
        "required for any address other than loopback",
    )
    auth: Literal["token", "none"] = setting(
        "token", says='"none": no token is needed on loopback, so every user of this machine can use the daemon'
    )
    allowed_hosts: Annotated[
        tuple[str, ...], kinds.listed(kinds.host(), "list of host names", most=100, distinct=True)
    ] = setting((), says="additional host names of the daemon, e.g. behind a proxy")
    public_url: Annotated[str | None, kinds.url()] = setting(
        None, says="public URL, e.g. of a TLS proxy; used in receipts and links"
    )
    trusted_proxies: Annotated[
        tuple[str, ...], kinds.listed(kinds.network(), "list of addresses", most=100, distinct=True)
    ] = setting((), says="addresses or networks whose X-Forwarded-… headers are trusted")

    @field_validator("public_url")
    @classmethod
    def _needs_token(cls, public_url: str | None, info: ValidationInfo) -> str | None:
        if public_url is not None and info.data.get("auth") == "none":
            raise refusal(
                'with auth = "none" anyone who can reach public_url could use the daemon; remove one of the two',
                at=("auth",),
            )
        return public_url

    @field_validator("auth")
    @classmethod
    def _only_on_loopback(cls, auth: str, info: ValidationInfo) -> str:
        address = info.data.get("host")
        if auth == "none" and address is not None and not is_loopback(address):
            raise refusal(f'is "none", and {address} can be reached from other machines; write "token"', at=("auth",))
        return auth

    @field_validator("token")
    @classmethod
    def _guarded(cls, token: Secret | None, info: ValidationInfo) -> Secret | None:
        address = info.data.get("host")
        if token is None and address is not None and not is_loopback(address):
            raise refusal(
                f"{address} can be reached by others, and there is no token; "
                'add token = {env = "WAKEFUL_TOKEN"} to [server], or listen on 127.0.0.1',
                at=("host",),
            )
        return token


class Store(Table):
    """The store."""

    url: Annotated[SecretUrl, kinds.store_url()] = setting(
        "sqlite:///wakeful.db", says="a file, relative to the home folder, or a PostgreSQL database"
    )


class Node(Table):
    """This node, among those that share the store."""

    labels: Annotated[
        tuple[str, ...], kinds.listed(kinds.label(), "list of labels", most=LABELS_MAX, distinct=True)
    ] = setting((), says="labels of this node; schedules with `runOn` only run on nodes with such a label")


class Schedules(Table):
    """Defaults for all schedules."""

    enabled: Annotated[bool, kinds.flag()] = setting(
        True, says="whether schedules run; false means standby: all instants are skipped"
    )
    timezone: Annotated[str, kinds.zone(local=True)] = setting("local", says="time zone of schedules without one")
    mirror: Literal["agent", "all", "off"] = setting("agent", says="which definitions are mirrored as files")


class Limits(Table):
    """Limits."""

    agent_interval_min: Annotated[int, kinds.duration("0s", "365d")] = setting(
        "60m", says="schedules that prompt an agent more often than this are rejected"
    )
    every_min: Annotated[int, kinds.duration("1ms", "365d")] = setting(
        "10s", says="a shorter `every` of a schedule or producer is raised to this"
    )
    concurrency_max: Annotated[int, kinds.count(1, 10_000)] = setting(
        64, says="maximum number of concurrent runs; a quarter of them is reserved for runs that schedules start"
    )
    agent_lane: Literal["serial", "parallel"] = setting("serial", says="whether each agent handles one run at a time")
    shutdown_grace: Annotated[int, kinds.duration("0s", "1h")] = setting(
        "30s", says="how long runs may continue at shutdown"
    )
    ledger_days: Annotated[int, kinds.count(1, 36_500)] = setting(90, says="how long runs are kept")
    body_max: Annotated[int, kinds.size("1KiB", "256MiB")] = setting("1MiB", says="maximum size of a request body")


class ActiveHoursTable(Table):
    """The hours of the day during which the heartbeat beats."""

    start: Annotated[str, kinds.time_of_day()] = setting(says="start of the active hours")
    end: Annotated[str, kinds.time_of_day(end=True)] = setting(
        says="end of the active hours (exclusive); equal to start: always active"
    )
    timezone: Annotated[str, kinds.zone(local=True)] = setting("local", says="time zone of start and end")

    def in_zone(self, local_zone: str) -> ActiveHours:
        """The window, with `local` replaced by this machine's zone."""
        return ActiveHours(self.start, self.end, local_zone if self.timezone == "local" else self.timezone)


class Heartbeat(Table):
    """The heartbeat."""

    enabled: Annotated[bool, kinds.flag()] = setting(False, says="whether the heartbeat is on")
    agent: Annotated[str, kinds.name()] = setting("default", says="the agent: a name under [agents]")
    session: Literal["keep", "fresh"] = setting(
        "keep",
        says="keep: all turns share one session, so the agent remembers them; fresh: each turn starts a new session",
    )
    model: Annotated[str | None, kinds.text("name of a model", most=200, example='"small-model"')] = setting(
        None, says="model for its turns; default: the agent's"
    )
    every: Annotated[int, kinds.duration("1s", "365d")] = setting("30m", says="interval between beats")
    prompt: Annotated[str, kinds.text()] = setting(
        HEARTBEAT_PROMPT, says="prompt of each turn; {ack_token} is replaced by ack_token"
    )
    ack_token: Annotated[str, kinds.single_word(64)] = setting(
        "HEARTBEAT_OK", says="a reply with this text means that there is nothing to report"
    )
    ack_chars_max: Annotated[int, kinds.count(0, 100_000)] = setting(
        300, says="how many other characters such a reply may contain and still not be delivered"
    )
    ack_match: Literal["edges", "anywhere"] = setting("edges", says="where in the reply the token must be")
    active_hours: ActiveHoursTable | None = setting(None, says="hours during which it beats; default: always")
    check: Annotated[Mapping[str, Any] | None, check_table()] = setting(
        None, says="a command or a request that runs before each beat; without output there is no turn"
    )
    spacing_min: Annotated[int, kinds.duration("0s", "24h")] = setting(
        "10s", says="minimum time between automatic wake turns"
    )
    turns_per_hour_max: Annotated[int, kinds.count(1, 3_600)] = setting(
        60, says="maximum turns per hour; further turns wait"
    )

    @field_validator("agent")
    @classmethod
    def _known_agent(cls, agent: str, info: ValidationInfo) -> str:
        reading: kinds.Reading | None = info.context
        if reading is not None and agent not in reading.agents:
            known = ", ".join(sorted(reading.agents))
            message = kinds.short(f"there is no agent '{agent}'; add [agents.{agent}], or name one of {known}")
            raise refusal(message, at=("agent",))
        return agent

    @property
    def full_prompt(self) -> str:
        """The prompt with the token in it."""
        return self.prompt.replace(ACK_TOKEN, self.ack_token)


class Hook(Table):
    """A webhook that wakes the agent: POST /api/hooks/NAME."""

    token: Annotated[Secret, kinds.secret()] = setting(says="bearer token for callers")


class Delivery(Table):
    """Delivery of messages to people."""

    retries_max: Annotated[int, kinds.count(0, 100)] = setting(
        5, says="retries before a delivery becomes a dead letter"
    )
    recovery_budget: Annotated[int, kinds.duration("0s", "1h")] = setting(
        "60s", says="how long startup may spend on deliveries left over from an earlier process"
    )
    age_max: Annotated[int, kinds.duration("1m", "365d")] = setting(
        "24h", says="messages older than this are no longer sent"
    )


class Alerts(Table):
    """When people are alerted."""

    errors: Annotated[int, kinds.count(1, 1_000)] = setting(2, says="consecutive bad instants before an alert")
    within: Annotated[int, kinds.duration("1s", "365d")] = setting(
        "1h", says="alert when an instant is still bad this long after its time"
    )
    channel: Annotated[str, kinds.name()] = setting(
        "last", says="where alerts go: a name under [channels], inbox, or last (the channel of the last interaction)"
    )
    outage: Annotated[int, kinds.duration("1s", "365d")] = setting(
        "10m", says="an outage of at least this length is reported afterwards if an instant was missed"
    )
    ping: Annotated[SecretUrl | None, kinds.secret_web_address()] = setting(
        None, says="URL to request while the clock ticks, so that an external monitor notices when it stops"
    )
    ping_every: Annotated[int, kinds.duration("1s", "1d")] = setting("5m", says="interval of the ping requests")
    approvers: Annotated[
        tuple[str, ...], kinds.listed(kinds.text(), "list of CHANNEL:SENDER", most=100, distinct=True)
    ] = setting((), says='who may approve by chat, such as ["phone:12345"]')


class Budgets(Table):
    """The maximum cost of all agents together."""

    day: Annotated[float | None, kinds.dollars("10.00")] = setting(
        None,
        says="maximum cost per day, in the time zone `schedules.timezone`; when it is reached, schedules are skipped",
    )
    month: Annotated[float | None, kinds.dollars("150.00")] = setting(None, says="maximum cost per month")
    warn_at: Annotated[float, kinds.amount(0.01, 1, "a share of the limit", "0.8")] = setting(
        0.8, says="alert when this share of a budget is spent"
    )
    brake: Annotated[bool, kinds.flag()] = setting(
        False, says="stop an agent whose turns cost more than ten times its median for an hour"
    )


class Price(Table):
    """The price of a model, in US dollars per million tokens."""

    input: Annotated[float, _PRICE] = setting(says="input tokens")
    output: Annotated[float, _PRICE] = setting(says="output tokens, including reasoning")
    cached_input: Annotated[float | None, _PRICE] = setting(
        None, says="input tokens read from a cache; default: the same as input"
    )


class SelfScheduling(Table):
    """What an agent may schedule on its own."""

    approval: Literal["always", "recurring", "never"] = setting(
        "always", says="what a person has to approve: always, recurring (one-shots pass), or never"
    )
    schedules_max: Annotated[int, kinds.count(0, 1_000)] = setting(20, says="maximum number of schedules per agent")
    interval_min: Annotated[int, kinds.duration("1s", "365d")] = setting(
        "1h", says="shortest interval of an agent's schedule"
    )
    expires: Annotated[int, kinds.duration("1m", "3650d")] = setting("30d", says="how long an agent's schedule lasts")
    depth_max: Annotated[int, kinds.count(0, 100)] = setting(
        1,
        says="how deep schedules may nest: one created by a run of an agent's schedule is a level deeper",
    )
    wakes_per_day: Annotated[int, kinds.count(0, 10_000)] = setting(
        24, says="how often an agent may use wake_me, or create a one-time schedule without approval, in 24 hours"
    )


class Workflows(Table):
    """Workflows written in Python."""

    modules: Annotated[tuple[str, ...], kinds.listed(kinds.module(), "list of modules", distinct=True)] = setting(
        (), says="modules to load at startup"
    )


class ExcludeTable(Table):
    """Days on which no schedule runs."""

    dates: Annotated[tuple[str, ...], kinds.listed(kinds.day(), "list of dates", most=DATES_MAX)] = setting(
        (), says="excluded days, in each schedule's time zone"
    )
    calendar: Annotated[str | None, kinds.text("file", most=4_096, example='"holidays.ics"')] = setting(
        None, says="an .ics file, relative to the home folder; the days of its events are excluded"
    )


class Otel(Table):
    """Tracing with OpenTelemetry; needs the extra `otel`."""

    endpoint: Annotated[str | None, kinds.url()] = setting(
        None, says="URL of an OTLP/HTTP collector; default: no tracing"
    )


class Log(Table):
    """The log files."""

    days: Annotated[int, kinds.count(1, 365)] = setting(7, says="how long log files are kept")


class Token(Table):
    """An additional API token with a role."""

    token: Annotated[Secret, kinds.secret()] = setting(says="the bearer token")
    role: Literal["read", "operate", "admin", "agent"] = setting(
        says="read: see everything; operate: also run, pause, resume, cancel, retry; admin: everything; "
        "agent: what an agent may do"
    )
    agent: Annotated[str | None, kinds.name()] = setting(None, says='for role = "agent": the agent that uses the token')

    @field_validator("agent")
    @classmethod
    def _agent_named(cls, agent: str | None, info: ValidationInfo) -> str | None:
        is_agent, reading = info.data.get("role") == "agent", info.context
        if is_agent and agent is None:
            raise refusal('is missing; with role = "agent" name the agent', at=("agent",))
        if not is_agent and agent is not None:
            raise refusal('is only valid with role = "agent"; remove it', at=("agent",))
        if agent is not None and isinstance(reading, kinds.Reading) and agent not in reading.agents:
            raise refusal(f"there is no agent '{agent}'; add [agents.{agent}]", at=("agent",))
        return agent


HOOKS: Final = NamedTables(by=None, default=None, models={"hook": Hook})

TOKENS: Final = NamedTables(by=None, default=None, models={"token": Token})

PRICES: Final = NamedTables(by=None, default=None, models={"price": Price})

ENTRIES: Final[Mapping[str, NamedTables]] = {
    "tokens": TOKENS,
    "agents": AGENTS,
    "hooks": HOOKS,
    "channels": CHANNELS,
    "slots": SLOTS,
    "prices": PRICES,
}
"""The tables that contain named tables."""


class Settings(Table):
    """All of `wakeful.toml`."""

    server: Server = Field(default_factory=Server)
    tokens: Mapping[Annotated[str, kinds.name()], Token] = Field(default_factory=dict)
    store: Store = Field(default_factory=Store)
    node: Node = Field(default_factory=Node)
    schedules: Schedules = Field(default_factory=Schedules)
    limits: Limits = Field(default_factory=Limits)
    agents: Mapping[Annotated[str, kinds.name()], Agent] = Field(default_factory=lambda: {"default": EchoAgent()})
    heartbeat: Heartbeat = Field(default_factory=Heartbeat)
    hooks: Mapping[Annotated[str, kinds.name()], Hook] = Field(default_factory=dict)
    delivery: Delivery = Field(default_factory=Delivery)
    channels: Mapping[Annotated[str, kinds.name(reserved=RESERVED_CHANNELS)], Channel] = Field(default_factory=dict)
    alerts: Alerts = Field(default_factory=Alerts)
    budgets: Budgets = Field(default_factory=Budgets)
    prices: Mapping[Annotated[str, _MODEL_NAME], Price] = Field(default_factory=dict)
    self_scheduling: SelfScheduling = Field(default_factory=SelfScheduling)
    quota: Quota = Field(default_factory=Quota)
    slots: Mapping[Annotated[str, kinds.name(32)], Slot] = Field(default_factory=dict)
    workflows: Workflows = Field(default_factory=Workflows)
    exclude: ExcludeTable = Field(default_factory=ExcludeTable)
    log: Log = Field(default_factory=Log)
    otel: Otel = Field(default_factory=Otel)

    @field_validator("agents", mode="before")
    @classmethod
    def _with_default(cls, written: Any) -> Any:
        return {DEFAULT_AGENT: {}, **written} if isinstance(written, Mapping) else written

    @field_validator("agents")
    @classmethod
    def _separate_namespaces(cls, agents: Mapping[str, Any]) -> Mapping[str, Any]:
        """Two agents must not share the slugs of their schedules."""
        owners: dict[str, str] = {}
        for name in agents:
            first = owners.setdefault(namespace(name), name)
            if first != name:
                message = f"its schedules would have the prefix '{namespace(name)}', as those of '{first}'; rename one"
                raise refusal(kinds.short(message), at=("agents", name))
        return agents

    @field_validator("channels")
    @classmethod
    def _free_names(cls, channels: Mapping[str, Any]) -> Mapping[str, Any]:
        if INBOX in channels and not isinstance(channels[INBOX], InboxChannel):
            raise refusal('is always the page; choose another name, or write type = "inbox"', at=("channels", INBOX))
        return channels

    @field_validator("alerts")
    @classmethod
    def _known_channel(cls, alerts: Alerts, info: ValidationInfo) -> Alerts:
        known = {*RESERVED_CHANNELS, INBOX, *info.data.get("channels", {})}
        if alerts.channel not in known and "channels" in info.data:
            named = ", ".join(sorted(known))
            message = f"there is no channel '{alerts.channel}'; add [channels.{alerts.channel}], or name one of {named}"
            raise refusal(kinds.short(message), at=("alerts", "channel"))
        return alerts

    @field_validator("prices")
    @classmethod
    def _budgets_can_be_counted(cls, prices: Mapping[str, Price], info: ValidationInfo) -> Mapping[str, Price]:
        """A budget in dollars needs agents whose turns have a known cost."""
        budgets = info.data.get("budgets")
        is_for_all = budgets is not None and (budgets.day is not None or budgets.month is not None)
        for name, agent in info.data.get("agents", {}).items():
            field = next((limit for limit in ("budget_day", "budget_month") if getattr(agent, limit) is not None), None)
            if (field is None and not is_for_all) or agent.adapter not in UNPRICED or agent.model in prices:
                continue
            model = f'[prices."{agent.model}"]' if agent.model else "model, and its price under [prices]"
            at = ("agents", name, field) if field else ("budgets",)
            raise refusal(f"agent '{name}' does not report what its turns cost; add {model}", at=at)
        return prices

    @field_validator("slots")
    @classmethod
    def _not_too_many(cls, slots: Mapping[str, Any], info: ValidationInfo) -> Mapping[str, Any]:
        quota = info.data.get("quota")
        if quota is not None and len(slots) > quota.slots_max:
            raise refusal(f"has {len(slots)} slots, and quota.slots_max is {quota.slots_max}; raise it, or remove some")
        return slots


def agent_names(data: Mapping[str, Any]) -> frozenset[str]:
    """The agents named in a file, including invalid ones: a reference to one of them is not another error."""
    named = data.get("agents")
    return frozenset({DEFAULT_AGENT, *(named if isinstance(named, Mapping) else ())})
