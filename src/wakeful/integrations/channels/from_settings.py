"""Creates channels from the settings."""

from collections.abc import Mapping
from typing import assert_never

from wakeful.config import channels as written
from wakeful.integrations.channels.apprise import AppriseChannel
from wakeful.integrations.channels.console import ConsoleChannel
from wakeful.integrations.channels.inbox import AnotherInbox
from wakeful.integrations.channels.telegram import Bot, TelegramChannel
from wakeful.integrations.channels.telegram_listening import ListeningTelegramChannel
from wakeful.integrations.channels.webhook import WebhookChannel
from wakeful.ports.channel import Channel
from wakeful.ports.clock import Clock
from wakeful.ports.exchange import ExchangeListener


class ConfiguredChannels:
    """Creates channels; one whose settings did not change stays the same object and keeps listening."""

    def __init__(self) -> None:
        self._made: dict[str, tuple[written.AnyChannel, Channel]] = {}

    def channels(
        self, described: Mapping[str, written.AnyChannel], clock: Clock, listener: ExchangeListener | None
    ) -> dict[str, Channel]:
        """One for each `[channels.NAME]`; the inbox exists without one."""
        made: dict[str, tuple[written.AnyChannel, Channel]] = {}
        for name, channel in described.items():
            if isinstance(channel, written.InboxChannel) and name == "inbox":
                continue
            known = self._made.get(name)
            made[name] = (
                known if known is not None and known[0] == channel else (channel, _make(channel, clock, listener))
            )
        self._made = made
        return {name: channel for name, (_, channel) in made.items()}


def _make(channel: written.AnyChannel, clock: Clock, listener: ExchangeListener | None) -> Channel:
    match channel:
        case written.WebhookChannel():
            token = None if channel.token is None else channel.token.reveal()
            return WebhookChannel(
                channel.url.reveal(), clock, listener, token=token, allow_private=channel.allow_private
            )
        case written.TelegramChannel():
            bot = Bot(channel.token.reveal(), channel.base_url, clock, listener)
            if not channel.inbound:
                return TelegramChannel(bot, channel.chat, clock)
            return ListeningTelegramChannel(bot, channel.chat, clock, frozenset(channel.senders))
        case written.ConsoleChannel():
            return ConsoleChannel()
        case written.AppriseChannel():
            return AppriseChannel(channel.url.reveal())
        case written.InboxChannel():
            return AnotherInbox()
        case _:
            assert_never(channel)
