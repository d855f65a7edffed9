"""`[channels.NAME]`: the ways to a person."""

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

_TYPE_SAYS: Final = "what kind of channel it is"
_CHAT: Final = kinds.matching(
    "a chat", re.compile(r"-?\d+|@\w+", re.ASCII), 'write its number or @name, like "12345"', example='"12345"'
)


def _chat() -> Kind:
    """Telegram writes chats as numbers, so a number without quotes is understood too."""

    def read(value: Any, reader: SecretReader | None) -> str:
        is_number = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63
        return str(_CHAT.read(str(value) if is_number else value, reader))

    return Kind("chat: a number or @name", _CHAT.example, read)


class TelegramChannel(Table):
    """A Telegram bot."""

    type: Literal["telegram"] = setting(says=_TYPE_SAYS)
    token: Annotated[Secret, kinds.secret()] = setting(says="the bot's token")
    chat: Annotated[str, _chat()] = setting(says="who gets what is delivered without a recipient")
    inbound: Annotated[bool, kinds.flag()] = setting(False, says="whether messages to the bot give the agent a turn")
    senders: Annotated[tuple[str, ...], kinds.listed(_chat(), "list of chats", most=100, distinct=True)] = setting(
        (), says="whose messages count besides those of chat; all others are ignored"
    )
    base_url: Annotated[str, kinds.url(https=True)] = setting("https://api.telegram.org", says="where the bot's API is")


class WebhookChannel(Table):
    """A POST to an address."""

    type: Literal["webhook"] = setting(says=_TYPE_SAYS)
    url: Annotated[SecretUrl, kinds.secret_web_address()] = setting(says="where deliveries are posted")
    token: Annotated[Secret | None, kinds.secret()] = setting(None, says="sent as a bearer token")
    allow_private: Annotated[bool, kinds.flag()] = setting(
        False, says="whether the address may lie on this machine or in a private network"
    )

    @field_validator("allow_private")
    @classmethod
    def _public(cls, allow_private: bool, info: ValidationInfo) -> bool:
        found = info.data.get("url")
        if (
            isinstance(found, SecretUrl)
            and not allow_private
            and kinds.is_private(urlsplit(found.reveal()).hostname or "")
        ):
            raise refusal(
                "lies on this machine or in a private network; if that is meant, write allow_private = true",
                at=("url",),
            )
        return allow_private


class ConsoleChannel(Table):
    """The daemon's own output."""

    type: Literal["console"] = setting(says=_TYPE_SAYS)


class InboxChannel(Table):
    """The page."""

    type: Literal["inbox"] = setting(says=_TYPE_SAYS)


class AppriseChannel(Table):
    """Any of the services the apprise library knows."""

    type: Literal["apprise"] = setting(says=_TYPE_SAYS)
    url: Annotated[Secret, kinds.secret()] = setting(says="apprise's address of the service; it holds the credentials")


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
"""What a value of `Settings.channels` is, for a `match` over all of them."""

Channel: TypeAlias = Annotated[
    Annotated[TelegramChannel, Tag("telegram")]
    | Annotated[WebhookChannel, Tag("webhook")]
    | Annotated[ConsoleChannel, Tag("console")]
    | Annotated[InboxChannel, Tag("inbox")]
    | Annotated[AppriseChannel, Tag("apprise")],
    Discriminator(_type),
]
