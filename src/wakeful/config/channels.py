"""`[channels.NAME]`: how messages reach a person."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal, TypeAlias
from urllib.parse import urlsplit

from pydantic import Discriminator, Tag, ValidationInfo, field_validator

from wakeful.config import kinds
from wakeful.config.faults import refusal
from wakeful.config.kinds import Kind, setting
from wakeful.config.secrets import Secret, SecretReader, SecretUrl
from wakeful.config.table import NamedTables, Table

_TYPE_SAYS: Final = "the kind of channel"
_CHAT: Final = kinds.matching(
    "a chat", re.compile(r"-?\d+|@\w+", re.ASCII), 'write its number or @name, like "12345"', example='"12345"'
)


def _chat() -> Kind:
    """Telegram chat ids are numbers, so a number without quotes is accepted too."""

    def read(value: Any, reader: SecretReader | None) -> str:
        is_number = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63
        return str(_CHAT.read(str(value) if is_number else value, reader))

    return Kind("chat: a number or @name", _CHAT.example, read)


class TelegramChannel(Table):
    """A Telegram bot."""

    type: Literal["telegram"] = setting(says=_TYPE_SAYS)
    token: Annotated[Secret, kinds.secret()] = setting(says="token of the bot")
    chat: Annotated[str, _chat()] = setting(says="chat for deliveries without a recipient")
    inbound: Annotated[bool, kinds.flag()] = setting(False, says="whether a message to the bot gives the agent a turn")
    senders: Annotated[tuple[str, ...], kinds.listed(_chat(), "list of chats", most=100, distinct=True)] = setting(
        (), says="senders accepted besides chat; all others are ignored"
    )
    base_url: Annotated[str, kinds.url(https=True)] = setting(
        "https://api.telegram.org", says="base URL of the Bot API"
    )


class WebhookChannel(Table):
    """A POST to a URL."""

    type: Literal["webhook"] = setting(says=_TYPE_SAYS)
    url: Annotated[SecretUrl, kinds.secret_web_address()] = setting(says="URL that deliveries are posted to")
    token: Annotated[Secret | None, kinds.secret()] = setting(None, says="sent as a bearer token")
    allow_private: Annotated[bool, kinds.flag()] = setting(
        False, says="whether the URL may point to this machine or a private network"
    )

    @field_validator("allow_private")
    @classmethod
    def _public(cls, allow_private: bool, info: ValidationInfo) -> bool:
        url = info.data.get("url")
        if isinstance(url, SecretUrl) and not allow_private and kinds.is_private(urlsplit(url.reveal()).hostname or ""):
            raise refusal(
                "points to this machine or a private network; if that is intended, write allow_private = true",
                at=("url",),
            )
        return allow_private


class ConsoleChannel(Table):
    """The daemon's standard output."""

    type: Literal["console"] = setting(says=_TYPE_SAYS)


class InboxChannel(Table):
    """The inbox on the page."""

    type: Literal["inbox"] = setting(says=_TYPE_SAYS)


class AppriseChannel(Table):
    """Any service supported by the apprise library."""

    type: Literal["apprise"] = setting(says=_TYPE_SAYS)
    url: Annotated[Secret, kinds.secret()] = setting(says="apprise URL of the service, including credentials")


CHANNELS: Final = NamedTables(
    by="type",
    default=None,
    models={
        "telegram": TelegramChannel,
        "webhook": WebhookChannel,
        "console": ConsoleChannel,
        "inbox": InboxChannel,
        "apprise": AppriseChannel,
    },
)


def _type(written: Any) -> str | None:
    return CHANNELS.tag(written)


AnyChannel: TypeAlias = TelegramChannel | WebhookChannel | ConsoleChannel | InboxChannel | AppriseChannel
"""Any value of `Settings.channels`, for an exhaustive `match`."""

Channel: TypeAlias = Annotated[
    Annotated[TelegramChannel, Tag("telegram")]
    | Annotated[WebhookChannel, Tag("webhook")]
    | Annotated[ConsoleChannel, Tag("console")]
    | Annotated[InboxChannel, Tag("inbox")]
    | Annotated[AppriseChannel, Tag("apprise")],
    Discriminator(_type),
]
