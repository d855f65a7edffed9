"""The settings: all tables of `wakeful.toml` that are the same for everyone.

Durations are read as milliseconds, sizes as bytes, secrets as `Secret`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from wakeful.config.check import CHECK
from wakeful.config.kinds import texts
from wakeful.config.kinds.addresses import HOST, NETWORK, URL
from wakeful.config.kinds.clocks import DAY, ZONE, time_of_day
from wakeful.config.kinds.lists import listed
from wakeful.config.kinds.numbers import FLAG, amount, count, dollars, duration, size
from wakeful.config.kinds.reading import reading_of
from wakeful.config.kinds.secrets import SECRET, SECRET_URL, STORE_URL
from wakeful.config.kinds.texts import LABEL, MODULE, single_word
from wakeful.config.secrets import Secret, SecretUrl
from wakeful.config.table import CHOICE, NamedTables, described_table, setting, table
from wakeful.core.fields import Fields, shortened
from wakeful.core.schedule.exclude import DATES_MAX
from wakeful.core.schedule.labels import LABELS_MAX
from wakeful.core.time.active_hours import ActiveHours
from wakeful.integrations.net.guard import is_loopback

_PRICE: Final = amount(0, 100_000, "US dollars per million tokens", "0.60")
ACK_TOKEN: Final = "{ack_token}"  # noqa: S105 - a place in a prompt
HEARTBEAT_PROMPT: Final = (
    "Go through what is waiting and act on whatever is due. "
    "If nothing needs a person's attention, answer only {ack_token}."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """Where the daemon listens."""

    host: str = setting(HOST, "address to listen on", "127.0.0.1")
    port: int = setting(count(0, 65_535), "port; 0 picks a free one", 8377)
    token: Secret | None = setting(
        SECRET,
        "bearer token for callers, instead of the random one in the home folder's `token` file; "
        "required for any address other than loopback",
        None,
    )
    auth: Literal["token", "none"] = setting(
        CHOICE, '"none": no token is needed on loopback, so every user of this machine can use the daemon', "token"
    )
    allowed_hosts: tuple[str, ...] = setting(
        listed(HOST, "list of host names", most=100, distinct=True),
        "additional host names of the daemon, e.g. behind a proxy",
        (),
    )
    public_url: str | None = setting(URL, "public URL, e.g. of a TLS proxy; used in receipts and links", None)
    trusted_proxies: tuple[str, ...] = setting(
        listed(NETWORK, "list of addresses", most=100, distinct=True),
        "addresses or networks whose X-Forwarded-… headers are trusted",
        (),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """The store."""

    url: SecretUrl = setting(
        STORE_URL, "a file, relative to the home folder, or a PostgreSQL database", "sqlite:///wakeful.db"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """This node, among those that share the store."""

    labels: tuple[str, ...] = setting(
        listed(LABEL, "list of labels", most=LABELS_MAX, distinct=True),
        "labels of this node; schedules with `runOn` only run on nodes with such a label",
        (),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedules:
    """Defaults for all schedules."""

    enabled: bool = setting(FLAG, "whether schedules run; false means standby: all instants are skipped", True)
    timezone: str = setting(ZONE, "time zone of schedules without one", "local")
    mirror: Literal["agent", "all", "off"] = setting(CHOICE, "which definitions are mirrored as files", "agent")
    files: Literal["ask", "trust"] = setting(
        CHOICE, "whether a file that changes while an agent works needs approval", "ask"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits."""

    agent_interval_min: int = setting(
        duration("0s", "365d"), "schedules that prompt an agent more often than this are rejected", "60m"
    )
    every_min: int = setting(
        duration("1ms", "365d"), "a shorter `every` of a schedule or producer is raised to this", "10s"
    )
    concurrency_max: int = setting(
        count(1, 10_000),
        "maximum number of concurrent runs; a quarter of them is reserved for runs that schedules start",
        64,
    )
    agent_lane: Literal["serial", "parallel"] = setting(
        CHOICE, "whether each agent handles one run at a time", "serial"
    )
    shutdown_grace: int = setting(duration("0s", "1h"), "how long runs may continue at shutdown", "30s")
    ledger_days: int = setting(count(1, 36_500), "how long runs are kept", 90)
    body_max: int = setting(size("1KiB", "256MiB"), "maximum size of a request body", "1MiB")


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveHoursTable:
    """The hours of the day during which the heartbeat beats."""

    start: str = setting(time_of_day(), "start of the active hours")
    end: str = setting(time_of_day("24:00"), "end of the active hours (exclusive); equal to start: always active")
    timezone: str = setting(ZONE, "time zone of start and end", "local")

    def in_zone(self, local_zone: str) -> ActiveHours:
        """The window, with `local` replaced by this machine's zone."""
        return ActiveHours(self.start, self.end, local_zone if self.timezone == "local" else self.timezone)


ACTIVE_HOURS: Final = described_table(ActiveHoursTable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """The heartbeat."""

    enabled: bool = setting(FLAG, "whether the heartbeat is on", False)
    agent: str = setting(texts.name(), "the agent: a name under [agents]", "default")
    session: Literal["keep", "fresh"] = setting(
        CHOICE,
        "keep: all turns share one session, so the agent remembers them; fresh: each turn starts a new session",
        "keep",
    )
    model: str | None = setting(
        texts.text("name of a model", most=200, example='"small-model"'),
        "model for its turns; default: the agent's",
        None,
    )
    every: int = setting(duration("1s", "365d"), "interval between beats", "30m")
    prompt: str = setting(texts.text(), "prompt of each turn; {ack_token} is replaced by ack_token", HEARTBEAT_PROMPT)
    ack_token: str = setting(
        single_word(64), "a reply with this text means that there is nothing to report", "HEARTBEAT_OK"
    )
    ack_chars_max: int = setting(
        count(0, 100_000), "how many other characters such a reply may contain and still not be delivered", 300
    )
    ack_match: Literal["edges", "anywhere"] = setting(CHOICE, "where in the reply the token must be", "edges")
    active_hours: ActiveHoursTable | None = setting(
        table(ACTIVE_HOURS), "hours during which it beats; default: always", None
    )
    check: Mapping[str, Any] | None = setting(
        CHECK, "a command or a request that runs before each beat; without output there is no turn", None
    )
    spacing_min: int = setting(duration("0s", "24h"), "minimum time between automatic wake turns", "10s")
    turns_per_hour_max: int = setting(count(1, 3_600), "maximum turns per hour; further turns wait", 60)

    @property
    def full_prompt(self) -> str:
        """The prompt with the token in it."""
        return self.prompt.replace(ACK_TOKEN, self.ack_token)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """A webhook that wakes the agent: POST /api/hooks/NAME."""

    token: Secret = setting(SECRET, "bearer token for callers")


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """Delivery of messages to people."""

    retries_max: int = setting(count(0, 100), "retries before a delivery becomes a dead letter", 5)
    recovery_budget: int = setting(
        duration("0s", "1h"), "how long startup may spend on deliveries left over from an earlier process", "60s"
    )
    age_max: int = setting(duration("1m", "365d"), "messages older than this are no longer sent", "24h")


@dataclass(frozen=True, slots=True, kw_only=True)
class Alerts:
    """When people are alerted."""

    errors: int = setting(count(1, 1_000), "consecutive bad instants before an alert", 2)
    within: int = setting(duration("1s", "365d"), "alert when an instant is still bad this long after its time", "1h")
    channel: str = setting(
        texts.name(),
        "where alerts go: a name under [channels], inbox, or last (the channel of the last interaction)",
        "last",
    )
    outage: int = setting(
        duration("1s", "365d"),
        "an outage of at least this length is reported afterwards if an instant was missed",
        "10m",
    )
    ping: SecretUrl | None = setting(
        SECRET_URL, "URL to request while the clock ticks, so that an external monitor notices when it stops", None
    )
    ping_every: int = setting(duration("1s", "1d"), "interval of the ping requests", "5m")
    approvers: tuple[str, ...] = setting(
        listed(texts.text(), "list of CHANNEL:SENDER", most=100, distinct=True),
        'who may approve by chat, such as ["phone:12345"]',
        (),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgets:
    """The maximum cost of all agents together."""

    day: float | None = setting(
        dollars("10.00"),
        "maximum cost per day, in the time zone `schedules.timezone`; when it is reached, schedules are skipped",
        None,
    )
    month: float | None = setting(dollars("150.00"), "maximum cost per month", None)
    unpriced: Literal["refuse", "allow"] = setting(
        CHOICE,
        "refuse: limits in dollars are refused while the cost of an agent cannot be known. allow: they do not "
        "apply to such agents",
        "refuse",
    )
    warn_at: float = setting(
        amount(0.01, 1, "a share of the limit", "0.8"), "alert when this share of a budget is spent", 0.8
    )
    brake: bool = setting(FLAG, "stop an agent whose turns cost more than ten times its median for an hour", False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """The price of a model, in US dollars per million tokens."""

    input: float = setting(_PRICE, "input tokens")
    output: float = setting(_PRICE, "output tokens, including reasoning")
    cached_input: float | None = setting(_PRICE, "input tokens read from a cache; default: the same as input", None)


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfScheduling:
    """What an agent may schedule on its own."""

    approval: Literal["always", "recurring", "never"] = setting(
        CHOICE, "what a person has to approve: always, recurring (one-shots pass), or never", "always"
    )
    schedules_max: int = setting(count(0, 1_000), "maximum number of schedules per agent", 20)
    interval_min: int = setting(duration("1s", "365d"), "shortest interval of an agent's schedule", "1h")
    expires: int = setting(duration("1m", "3650d"), "how long an agent's schedule lasts", "30d")
    depth_max: int = setting(
        count(0, 100), "how deep schedules may nest: one created by a run of an agent's schedule is a level deeper", 1
    )
    wakes_per_day: int = setting(
        count(0, 10_000),
        "how often an agent may use wake_me, or create a one-time schedule without approval, in 24 hours",
        24,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Workflows:
    """Workflows written in Python."""

    modules: tuple[str, ...] = setting(
        listed(MODULE, "list of modules", distinct=True), "modules to load at startup", ()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcludeTable:
    """Days on which no schedule runs."""

    dates: tuple[str, ...] = setting(
        listed(DAY, "list of dates", most=DATES_MAX), "excluded days, in each schedule's time zone", ()
    )
    calendar: str | None = setting(
        texts.text("file", most=4_096, example='"holidays.ics"'),
        "an .ics file, relative to the home folder; the days of its events are excluded",
        None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Otel:
    """Tracing with OpenTelemetry; needs the extra `otel`."""

    endpoint: str | None = setting(URL, "URL of an OTLP/HTTP collector; default: no tracing", None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """The log files."""

    days: int = setting(count(1, 365), "how long log files are kept", 7)


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """An additional API token with a role."""

    token: Secret = setting(SECRET, "the bearer token")
    role: Literal["read", "operate", "admin", "agent"] = setting(
        CHOICE,
        "read: see everything; operate: also run, pause, resume, cancel, retry; admin: everything; "
        "agent: what an agent may do",
    )
    agent: str | None = setting(texts.name(), 'for role = "agent": the agent that uses the token', None)


def _check_server(fields: Fields, given: Mapping[str, Any]) -> None:
    """A client that reaches the daemon needs a token."""
    address, auth = given.get("host"), given.get("auth")
    is_reachable = address is not None and not is_loopback(address)
    if is_reachable and "token" in given and given["token"] is None:
        fields.fail(
            "host",
            f"{address} can be reached by others, and there is no token; "
            'add token = {env = "WAKEFUL_TOKEN"} to [server], or listen on 127.0.0.1',
        )
    if auth == "none" and is_reachable:
        fields.fail("auth", f'is "none", and {address} can be reached from other machines; write "token"')
    elif auth == "none" and given.get("public_url") is not None:
        fields.fail(
            "auth", 'with auth = "none" anyone who can reach public_url could use the daemon; remove one of the two'
        )


def _check_heartbeat(fields: Fields, given: Mapping[str, Any]) -> None:
    agent, agents = given.get("agent"), reading_of(fields).agents
    if agent is not None and agents is not None and agent not in agents:
        known = ", ".join(sorted(agents))
        fields.fail("agent", shortened(f"there is no agent '{agent}'; add [agents.{agent}], or name one of {known}"))


def _check_token(fields: Fields, given: Mapping[str, Any]) -> None:
    """The agent of a token."""
    if "agent" not in given:
        return
    agent, agents, is_agent = given["agent"], reading_of(fields).agents, given.get("role") == "agent"
    if is_agent and agent is None:
        fields.fail("agent", 'is missing; with role = "agent" name the agent')
    elif not is_agent and agent is not None:
        fields.fail("agent", 'is only valid with role = "agent"; remove it')
    elif agent is not None and agents is not None and agent not in agents:
        fields.fail("agent", f"there is no agent '{agent}'; add [agents.{agent}]")


HEARTBEAT: Final = described_table(Heartbeat, _check_heartbeat)
HOOKS: Final = NamedTables(by=None, default=None, tables={"hook": described_table(Hook)})
TOKENS: Final = NamedTables(by=None, default=None, tables={"token": described_table(Token, _check_token)})
PRICES: Final = NamedTables(by=None, default=None, tables={"price": described_table(Price)})
SERVER: Final = described_table(Server, _check_server)
