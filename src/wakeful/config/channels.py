"""`[channels.NAME]`: how messages reach a person."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import urlsplit

from wakeful.config.faults import refusal
from wakeful.config.kinds.addresses import HTTPS_URL, is_private
from wakeful.config.kinds.lists import listed
from wakeful.config.kinds.numbers import FLAG
from wakeful.config.kinds.reading import kind_of_value, shown
from wakeful.config.kinds.secrets import SECRET, SECRET_URL
from wakeful.config.kinds.texts import plain_text, text
from wakeful.config.plugins import SETTINGS_OF_PLUGIN
from wakeful.config.secrets import Secret, SecretUrl
from wakeful.config.table import CHOICE, NamedTables, described_table, setting
from wakeful.core.description import Kind
from wakeful.core.fields import Fields

_TYPE_SAYS: Final = "the kind of channel"
_CHAT: Final = re.compile(r"-?\d+|@\w+", re.ASCII)


def _chat() -> Kind:
    """Telegram chat ids are numbers, so a number without quotes is accepted too."""

    def value_of(value: Any) -> str:
        is_number = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63
        chat = plain_text(str(value) if is_number else value, 200)
        if not _CHAT.fullmatch(chat):
            raise refusal(f'{shown(chat)} is not a chat; write its number or @name, like "12345"')
        return chat

    return kind_of_value("chat: a number or @name", '"12345"', value_of)


@dataclass(frozen=True, slots=True, kw_only=True)
class TelegramChannel:
    """A Telegram bot."""

    type: Literal["telegram"] = setting(CHOICE, _TYPE_SAYS)
    token: Secret = setting(SECRET, "token of the bot")
    chat: str = setting(_chat(), "chat for deliveries without a recipient")
    inbound: bool = setting(FLAG, "whether a message to the bot gives the agent a turn", False)
    senders: tuple[str, ...] = setting(
        listed(_chat(), "list of chats", most=100, distinct=True),
        "senders accepted besides chat; all others are ignored",
        (),
    )
    base_url: str = setting(HTTPS_URL, "base URL of the Bot API", "https://api.telegram.org")


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookChannel:
    """A POST to a URL."""

    type: Literal["webhook"] = setting(CHOICE, _TYPE_SAYS)
    url: SecretUrl = setting(SECRET_URL, "URL that deliveries are posted to")
    token: Secret | None = setting(SECRET, "sent as a bearer token", None)
    allow_private: bool = setting(FLAG, "whether the URL may point to this machine or a private network", False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleChannel:
    """The daemon's standard output."""

    type: Literal["console"] = setting(CHOICE, _TYPE_SAYS)


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxChannel:
    """The inbox on the page."""

    type: Literal["inbox"] = setting(CHOICE, _TYPE_SAYS)


@dataclass(frozen=True, slots=True, kw_only=True)
class AppriseChannel:
    """Any service supported by the apprise library."""

    type: Literal["apprise"] = setting(CHOICE, _TYPE_SAYS)
    url: Secret = setting(SECRET, "apprise URL of the service, including credentials")


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginChannel:
    """A channel of a plugin; it reads the other settings itself."""

    type: str = setting(text(most=200), _TYPE_SAYS)
    settings: Mapping[str, Any] = setting(SETTINGS_OF_PLUGIN, "what the plugin reads", {})


def _check_webhook(fields: Fields, given: Mapping[str, Any]) -> None:
    url: SecretUrl | None = given.get("url")
    if url is not None and given.get("allow_private") is False and is_private(urlsplit(url.reveal()).hostname or ""):
        fields.fail(
            "url", "points to this machine or a private network; if that is intended, write allow_private = true"
        )


AnyChannel: TypeAlias = (
    PluginChannel | TelegramChannel | WebhookChannel | ConsoleChannel | InboxChannel | AppriseChannel
)
"""Any value of `Settings.channels`, for an exhaustive `match`."""
CHANNELS: Final = NamedTables(
    by="type",
    default=None,
    tables={
        "telegram": described_table(TelegramChannel),
        "webhook": described_table(WebhookChannel, _check_webhook),
        "console": described_table(ConsoleChannel),
        "inbox": described_table(InboxChannel),
        "apprise": described_table(AppriseChannel),
    },
    plugin=described_table(PluginChannel),
    group="wakeful.channels",
)
