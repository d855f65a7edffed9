"""What a plugin is written against: the protocols of agents, channels, quota providers and importers, and their values.

A package offers a kind as an entry point in one of the groups `wakeful.agents`, `wakeful.channels`,
`wakeful.providers` and `wakeful.importers`. Its name is the kind, and it names a function that takes the settings of
one such agent, channel or provider, as a mapping, and returns an object with the methods of the protocol. A function
may stand for an agent (it takes a prompt) and for a channel (it takes a text).

`VERSION` counts up when a protocol changes in a way that plugins notice. A factory with the attribute
`wakeful_version` is refused by other versions.
"""

from wakeful.core.run.agent_reply import AgentReply
from wakeful.core.run.results import Busy, Failed, Throttled, Unconfirmed
from wakeful.core.run.usage import Usage
from wakeful.core.slot.slot import ReadFailure, Reading
from wakeful.core.slug import slug_of
from wakeful.integrations.imports.entries import Context, Entry, EntryRefused, SourceFile, SourceRefused
from wakeful.ports.action import Fire, Ladder
from wakeful.ports.agent import (
    Accepted,
    Agent,
    Broken,
    Exchange,
    Finished,
    NoSign,
    NotVisible,
    Replied,
    Turn,
    Working,
)
from wakeful.ports.channel import Channel, OutgoingMessage, Refused, Sent, Unsent
from wakeful.ports.plugins import VERSION
from wakeful.ports.quota import QuotaProvider, WakeFailure

__all__ = [
    "VERSION",
    "Accepted",
    "Agent",
    "AgentReply",
    "Broken",
    "Busy",
    "Channel",
    "Context",
    "Entry",
    "EntryRefused",
    "Exchange",
    "Failed",
    "Finished",
    "Fire",
    "Ladder",
    "NoSign",
    "NotVisible",
    "OutgoingMessage",
    "QuotaProvider",
    "ReadFailure",
    "Reading",
    "Refused",
    "Replied",
    "Sent",
    "SourceFile",
    "SourceRefused",
    "Throttled",
    "Turn",
    "Unconfirmed",
    "Unsent",
    "Usage",
    "WakeFailure",
    "Working",
    "slug_of",
]
