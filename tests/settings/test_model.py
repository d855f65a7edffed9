"""The settings: what they are by default, and what they become."""

from __future__ import annotations

import tomllib
from dataclasses import FrozenInstanceError
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from settings.kit import CONTRACT, described, loaded
from wakeful.config import Secret, Settings, SettingsRefused, load
from wakeful.config.agents import AnthropicAgent, CallAgent, CommandAgent, EchoAgent, OpenAIAgent, SessionsAgent
from wakeful.config.channels import AppriseChannel, ConsoleChannel, InboxChannel, TelegramChannel, WebhookChannel
from wakeful.config.slots import CommandSlot, GlmSlot, HttpSlot
from wakeful.core.time.active_hours import ActiveHours
from wakeful.engine.clock import SystemClock
from wakeful.features.quota.registry import Config, SlotRegistry
from wakeful.integrations.providers.from_settings import make_provider

MINUTE, HOUR = 60_000, 3_600_000


def promised() -> list[tuple[tuple[str, ...], str, Any]]:
    """Every value of the contract that is a default: its table, its key, the value as written."""
    found = []
    table: tuple[str, ...] = ()
    for line in CONTRACT.splitlines():
        if line.startswith("["):
            table = tuple(line[1 : line.index("]")].split("."))
        elif line and "# example" not in line:
            [(key, value)] = tomllib.loads(line).items()
            found.append((table, key, value))
    return found


@pytest.mark.parametrize(("table", "key", "value"), promised(), ids=str)
def test_every_default_is_the_one_promised(table: tuple[str, ...], key: str, value: Any) -> None:
    """Word for word as the contract writes it."""
    field = described(table, tomllib.loads(CONTRACT)).find(key)
    assert field is not None
    default = field.written_default
    assert (list(default) if isinstance(default, tuple) else default) == value


def test_the_contract_covers_every_plain_table() -> None:
    """No setting of a plain table is missing from the contract, but what it marks as an example."""
    written = tomllib.loads(CONTRACT)
    for section in (
        "server",
        "store",
        "schedules",
        "limits",
        "alerts",
        "self_scheduling",
        "heartbeat",
        "delivery",
        "quota",
        "workflows",
        "log",
    ):
        assert set(described((section,), written).names) == set(written[section])


def test_the_contract_itself_can_be_read(tmp_path: Path) -> None:
    """Its examples included."""
    settings = loaded(tmp_path, CONTRACT).settings
    assert settings.heartbeat.active_hours is not None
    assert set(settings.channels) == {"phone", "hook"}


def test_no_file_means_all_defaults(tmp_path: Path) -> None:
    """And nothing is written."""
    assert load(tmp_path).settings == Settings()
    assert load(tmp_path / "nowhere").settings == Settings()
    assert list(tmp_path.iterdir()) == []


def test_an_empty_file_means_all_defaults(tmp_path: Path) -> None:
    """Comments are nothing."""
    assert loaded(tmp_path, "# nothing yet\n").settings == Settings()


def test_durations_are_milliseconds_and_sizes_bytes(tmp_path: Path) -> None:
    """Text in the file, whole numbers in the program."""
    limits = loaded(tmp_path, '[limits]\nevery_min = "1m30s"\nbody_max = "64KiB"\n').settings.limits
    assert (limits.every_min, limits.body_max, limits.agent_interval_min) == (90_000, 65_536, HOUR)


@pytest.mark.parametrize(
    ("written", "size"),
    [('"2048"', 2048), ("2048", 2048), ('"2 KiB"', 2048), ('"2kb"', 2000), ('"1mib"', 2**20), ('"3MB"', 3_000_000)],
)
def test_sizes_are_read_with_any_usual_unit(tmp_path: Path, written: str, size: int) -> None:
    """Binary and decimal units, any case, and plain bytes."""
    assert loaded(tmp_path, f"[limits]\nbody_max = {written}\n").settings.limits.body_max == size


def test_every_adapter_has_its_own_fields(tmp_path: Path) -> None:
    """And what they have in common."""
    text = """
[agents.default]
url = "http://127.0.0.1:1"
[agents.server]
adapter = "sessions"
cwd = "/srv"
confirm_within = "1m"
[agents.gpt]
adapter = "openai"
model = "m"
url = "http://127.0.0.1:11434/v1"
max_tokens = 100
[agents.claude]
adapter = "anthropic"
model = "m"
api_key = "sk-secret"
system = "Be brief."
[agents.cli]
adapter = "command"
argv = ["agent", "--json", "{prompt}", ""]
resume_argv = ["agent", "--resume", "{session}", "{prompt}"]
session_pattern = 'session: (\\S+)'
env = {KEY = {env = "GLM_KEY"}, MODE = "plain"}
cwd = "work"
[agents.own]
adapter = "call"
target = "mypackage.agents:answer"
sessions_max = 3
"""
    agents = loaded(tmp_path, text).settings.agents
    kinds = {name: type(agent) for name, agent in agents.items()}
    assert kinds == {
        "default": EchoAgent,
        "server": SessionsAgent,
        "gpt": OpenAIAgent,
        "claude": AnthropicAgent,
        "cli": CommandAgent,
        "own": CallAgent,
    }
    cli, claude = agents["cli"], agents["claude"]
    assert isinstance(cli, CommandAgent)
    assert isinstance(claude, AnthropicAgent)
    assert cli.cwd == tmp_path / "work"
    assert cli.argv == ("agent", "--json", "{prompt}", "")
    assert cli.session_pattern is not None
    assert cli.session_pattern.search("session: abc").group(1) == "abc"  # type: ignore[union-attr]
    key = cli.env["KEY"]
    assert isinstance(key, Secret) and key.reveal() == "key-of-the-provider"
    assert cli.env["MODE"] == "plain", "no secret, so it is neither masked nor looked for in outputs"
    assert claude.api_key.reveal() == "sk-secret"
    assert (claude.max_tokens, claude.confirm_within, agents["server"].confirm_within) == (4096, 5 * MINUTE, MINUTE)


def test_the_default_agent_is_there_beside_others(tmp_path: Path) -> None:
    """Adding an agent does not take the built-in one away."""
    agents = loaded(tmp_path, '[agents.other]\nadapter = "echo"\n').settings.agents
    assert set(agents) == {"default", "other"}


def test_every_channel_type_has_its_own_fields(tmp_path: Path) -> None:
    """The type decides."""
    text = """
[channels.phone]
type = "telegram"
token = "1:abc"
chat = -10012345
inbound = true
senders = ["@someone", 7]
[channels.hook]
type = "webhook"
url = "https://example.org/in"
token = "t0ken"
[channels.here]
type = "console"
[channels.page]
type = "inbox"
[channels.mail]
type = "apprise"
url = "mailto://user:password@example.org"
"""
    channels = loaded(tmp_path, text).settings.channels
    expected = [TelegramChannel, WebhookChannel, ConsoleChannel, InboxChannel, AppriseChannel]
    assert [type(channel) for channel in channels.values()] == expected
    phone = channels["phone"]
    assert isinstance(phone, TelegramChannel)
    assert (phone.chat, phone.senders) == ("-10012345", ("@someone", "7"))


def test_every_provider_has_its_own_fields(tmp_path: Path) -> None:
    """And the modes in common."""
    text = """
[slots.main]
api_key = "key-1"
interval = "60m"
base_url = "http://127.0.0.1:3456"
[slots.any]
provider = "http"
quota_url = "https://example.org/quota"
wake_url = "https://example.org/wake"
wake_body = '{"model": "m"}'
times = ["09:00"]
[slots.tool]
provider = "command"
quota_argv = ["quota"]
enabled = false
"""
    slots = loaded(tmp_path, text).settings.slots
    assert [type(slot) for slot in slots.values()] == [GlmSlot, HttpSlot, CommandSlot]
    assert (slots["main"].interval, slots["any"].times, slots["tool"].enabled) == (HOUR, ("09:00",), False)


def test_a_slot_overrides_what_holds_for_all(tmp_path: Path) -> None:
    """Where it says so, and only there."""
    text = '[quota]\nerrors_max = 3\n[slots.a]\napi_key = "key-1"\nretry_window = "5m"\n'
    settings = loaded(tmp_path, text).settings
    make = partial(make_provider, clock=SystemClock(), home=tmp_path, zone="UTC", listener=None)
    book = SlotRegistry(Config(quota=settings.quota), make, lambda name, _: settings.slots[name])
    rules = book.define("a", {}).rules
    assert (rules.retry_window, rules.errors_max, rules.backoff_cap) == (5 * MINUTE, 3, 8 * HOUR)


def test_active_hours_become_a_window_of_the_core(tmp_path: Path) -> None:
    """`local` is replaced by whoever knows the zone."""
    text = '[heartbeat]\nactive_hours = {start = "22:00", end = "24:00"}\n'
    hours = loaded(tmp_path, text).settings.heartbeat.active_hours
    assert hours is not None
    assert hours.in_zone("Europe/Berlin") == ActiveHours("22:00", "24:00", "Europe/Berlin")


def test_the_prompt_of_the_heartbeat_names_the_token(tmp_path: Path) -> None:
    """A changed token does not leave the agent with the old one."""
    heartbeat = loaded(tmp_path, '[heartbeat]\nack_token = "ALL_QUIET"\n').settings.heartbeat
    assert "ALL_QUIET" in heartbeat.full_prompt
    assert "{ack_token}" not in heartbeat.full_prompt


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_loopback_needs_no_token(tmp_path: Path, host: str) -> None:
    """Only this machine can reach it."""
    assert loaded(tmp_path, f'[server]\nhost = "{host}"\n').settings.server.token is None


def test_any_bind_with_a_token_is_accepted(tmp_path: Path) -> None:
    """The token guards it."""
    server = loaded(tmp_path, '[server]\nhost = "0.0.0.0"\ntoken = {env = "WAKEFUL_TOKEN"}\n').settings.server
    assert isinstance(server.token, Secret)


def test_settings_cannot_be_changed() -> None:
    """A new state is a new object."""
    with pytest.raises(FrozenInstanceError):
        Settings().server.port = 1  # type: ignore[misc]


def test_options_of_the_command_line_count_more_than_the_file(tmp_path: Path) -> None:
    """And None means that one was not given."""
    found = loaded(tmp_path, "[server]\nport = 1\n", **{"server.port": 2, "server.host": None, "store.url": None})
    assert found.settings.server.port == 2
    assert found.sources["server.port"].origin == "option"


def test_a_text_may_be_saved_by_any_editor(tmp_path: Path) -> None:
    """With a byte order mark and the line ends of Windows."""
    assert loaded(tmp_path, b"\xef\xbb\xbf[log]\r\ndays = 3\r\n").settings.log.days == 3


def test_what_an_adapter_does_not_use_loads_with_a_warning(tmp_path: Path) -> None:
    """A file of 0.1 may set `confirm_within` anywhere: it works with sessions, stays silent with echo, and is named
    where it does nothing."""
    text = "".join(
        f'[agents.{name}]\nadapter = "{name}"\nconfirm_within = "1m"\nsessions_max = 5\n{more}\n'
        for name, more in (
            ("sessions", ""),
            ("echo", ""),
            ("openai", 'model = "m"'),
            ("command", 'argv = ["true"]'),
            ("call", 'target = "m:f"'),
        )
    )
    found = loaded(tmp_path, text)
    assert [(warning.field, warning.line) for warning in found.warnings] == [
        ("agents.openai.confirm_within", 13),
        ("agents.command.confirm_within", 18),
        ("agents.command.sessions_max", 19),
        ("agents.call.confirm_within", 23),
        ("agents.call.sessions_max", 24),
    ]
    assert all("has no effect with this adapter; remove it" in warning.message for warning in found.warnings)


def test_the_heartbeat_has_a_session_and_a_model(tmp_path: Path) -> None:
    """Kept and the agent's by default; another word is refused with the cure."""
    assert (Settings().heartbeat.session, Settings().heartbeat.model) == ("keep", None)
    written = loaded(tmp_path, '[heartbeat]\nsession = "fresh"\nmodel = "small-model"\n').settings.heartbeat
    assert (written.session, written.model) == ("fresh", "small-model")
    with pytest.raises(SettingsRefused, match="'new' is not one of keep, fresh"):
        loaded(tmp_path, '[heartbeat]\nsession = "new"\n')
