"""What the tests of the settings share: a file written and read in one line, and the contract's own example."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from wakeful.config import Loaded, LocatedError, SettingsRefused, load
from wakeful.config.model import ENTRIES, SETTINGS
from wakeful.core.description import Object

ENVIRON = {
    "WAKEFUL_TOKEN": "token-of-the-server",
    "DOOR_TOKEN": "token-of-the-door",
    "TELEGRAM_TOKEN": "123:telegram-token",
    "GLM_KEY": "key-of-the-provider",
}

# As the outside was promised it: values are the defaults, except lines and tables marked as an example.
CONTRACT = """\
[server]
host = "127.0.0.1"
port = 8377
token = {env = "WAKEFUL_TOKEN"}       # example; needed for any bind but loopback
auth = "token"                        # or "none": no token needed on loopback (warned about)
allowed_hosts = []                    # e.g. ["wakeful.example.com", "wakeful.default.svc"]
public_url = "https://wakeful.example.com"   # example: behind a proxy; receipts and links use it
trusted_proxies = []                  # whose forwarded headers count, e.g. ["127.0.0.1"]

[tokens.grafana]                      # example: further tokens, each with a role
token = {env = "WAKEFUL_TOKEN"}       # example
role = "read"                         # example

[store]
url = "sqlite:///wakeful.db"          # relative to the home folder; or postgresql://…

[schedules]
enabled = true                        # false: standby, instants are skipped(standby)
timezone = "local"                    # for schedules written without one
mirror = "agent"                      # definition files for: agent | all | off
files = "ask"                         # files that change while an agent works: ask | trust

[limits]
agent_interval_min = "60m"            # prompt schedules more often than this are refused
every_min = "10s"                     # `every` below this is clamped
concurrency_max = 64
agent_lane = "serial"                 # or "parallel"
shutdown_grace = "30s"
ledger_days = 90
body_max = "1MiB"

[agents.default]
adapter = "echo"                      # sessions | openai | anthropic | command | call | echo
url = "http://127.0.0.1:53000"        # example
model = "some-model"                  # example
confirm_within = "5m"
sessions_max = 50

[alerts]
errors = 2                            # tell after so many failed instants in a row …
within = "1h"                         # … or when an instant is still not green this long after its time
channel = "last"
outage = "10m"                        # tell once, afterwards, of an outage at least this long
ping = "https://hc.example.com/id"    # example: asked every ping_every while the clock ticks
ping_every = "5m"
approvers = []                        # who may approve by chat, e.g. ["phone:12345"]

[self_scheduling]
approval = "always"                   # always | recurring (one-shots pass) | never
schedules_max = 20                    # of each agent
interval_min = "1h"
expires = "30d"
depth_max = 1                         # a schedule made by a run of a schedule made by …
wakes_per_day = 24                    # wake_me

[heartbeat]
enabled = false
session = "keep"                      # or "fresh"
model = "small-model"                 # example
agent = "default"
every = "30m"
prompt = "…"                          # example
ack_token = "HEARTBEAT_OK"
ack_chars_max = 300
ack_match = "edges"                   # or "anywhere"
active_hours = {start = "09:00", end = "22:00", timezone = "Asia/Shanghai"}   # example
check = {command = {argv = ["./new-mail"]}}   # example: no turn if it prints nothing
spacing_min = "10s"                   # between turns that wakes ask for by themselves
turns_per_hour_max = 60

[hooks.door]                          # example: POST /api/hooks/door
token = {env = "DOOR_TOKEN"}          # example

[delivery]
retries_max = 5
recovery_budget = "60s"
age_max = "24h"

[channels.phone]                      # example
type = "telegram"                     # example: telegram | webhook | console | inbox | apprise
token = {env = "TELEGRAM_TOKEN"}      # example
chat = "12345"                        # example
inbound = false
base_url = "https://api.telegram.org"

[channels.hook]                       # example
type = "webhook"                      # example
url = "http://127.0.0.1:9000/in"      # example
allow_private = true                  # example: loopback and private networks are refused without it

[quota]
slots_max = 4
retry_window = "15m"
errors_max = 10
backoff_cap = "480m"

[slots.main]                          # example; the four above may be overridden here
enabled = true
provider = "glm"                      # glm | http | command
api_key = {env = "GLM_KEY"}           # example
base_url = "https://api.z.ai"
interval = "60m"                      # example: any of the three wake modes; leave one out to switch it off
times = ["09:00", "14:00"]            # example
after_reset = "1m"                    # example
timezone = "local"
poll = "30m"

[workflows]
modules = []                          # Python workflows to load, e.g. ["mypackage.flows"]

[log]
days = 7
"""


def write(home: Path, text: str | bytes) -> Path:
    """The settings file of a home folder, with this in it."""
    file = home / "wakeful.toml"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    file.chmod(0o600)
    return file


def loaded(home: Path, text: str | bytes, **options: Any) -> Loaded:
    """What the text means."""
    write(home, text)
    return load(home, environ=ENVIRON, options=options)


def faults(home: Path, text: str | bytes, **options: Any) -> list[LocatedError]:
    """Why the text is refused."""
    with pytest.raises(SettingsRefused) as caught:
        loaded(home, text, **options)
    return list(caught.value.errors)


def described(table: Sequence[str], data: Mapping[str, Any]) -> Object[Any]:
    """The description of the table at a path of the file."""
    if table[0] in ENTRIES:
        found = ENTRIES[table[0]].described(data[table[0]][table[1]])
        assert found is not None
        return found
    field = SETTINGS.find(".".join(table))
    assert field is not None
    return field.kind.inner[0]


def said(home: Path, text: str | bytes) -> list[str]:
    """The same as a person sees it."""
    return [str(fault) for fault in faults(home, text)]
