"""Parses updates of the Bot API: the sender, whether the bot is addressed, and the text.

In a group only messages addressed to the bot count: a mention, a command, or a reply to one of its messages. A bot
whose privacy mode is off would otherwise answer every message in the group.
"""

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from wakeful.ports.channel import Sender

_GROUPS: Final = frozenset({"group", "supergroup"})
# Content without text, as people call it. Photos, videos, audio and documents may have a caption.
_CONTENTS: Final = {
    "animation": "an animation",
    "audio": "an audio file",
    "contact": "a contact",
    "dice": "a dice",
    "document": "a file",
    "game": "a game",
    "location": "a location",
    "paid_media": "paid media",
    "photo": "a photo",
    "poll": "a poll",
    "sticker": "a sticker",
    "story": "a story",
    "venue": "a venue",
    "video": "a video",
    "video_note": "a video message",
    "voice": "a voice message",
}


class BotIdentity(NamedTuple):
    """The bot's identity, from `getMe`."""

    id: int | None = None
    username: str | None = None


class Message(NamedTuple):
    """The parts of a message that we use."""

    chat: str
    names: frozenset[str]  # names the settings may use for the chat
    sender: Sender
    is_group: bool
    text: str | None
    content: str | None  # the kind of content if there is no text
    moved_to: str | None
    author: str | None
    raw: Mapping[str, Any]


def message_of(update: Any) -> Message | None:
    """The message of an update; None for anything else."""
    message = update.get("message") if isinstance(update, Mapping) else None
    chat = message.get("chat") if isinstance(message, Mapping) else None
    if not isinstance(message, Mapping) or not isinstance(chat, Mapping) or not _is_id(chat.get("id")):
        return None
    chat_id = str(chat["id"])
    username = chat.get("username")
    names = {chat_id} | ({f"@{username}"} if isinstance(username, str) else set())
    text = message.get("text")
    if not isinstance(text, str):
        text = message.get("caption")
    moved = message.get("migrate_to_chat_id")
    author = message.get("from")
    author_id = author.get("id") if isinstance(author, Mapping) else None
    return Message(
        chat_id,
        frozenset(names),
        Sender(chat_id, _title(chat, message)),
        chat.get("type") in _GROUPS,
        text if isinstance(text, str) and text.strip() else None,
        next((words for name, words in _CONTENTS.items() if name in message), None),
        str(moved) if _is_id(moved) else None,
        str(author_id) if _is_id(author_id) else None,
        message,
    )


def is_addressed(message: Message, me: BotIdentity) -> bool:
    """Whether a group message addresses the bot; if the bot's name is unknown, all do."""
    if me.id is None:
        return True
    replied = message.raw.get("reply_to_message")
    author = replied.get("from") if isinstance(replied, Mapping) else None
    if isinstance(author, Mapping) and author.get("id") == me.id:
        return True
    text = message.text or ""
    command = re.match(r"/\w+(@\w+)?(?=\s|$)", text)
    if command is not None:
        return command[1] is None or command[1][1:].casefold() == (me.username or "").casefold()
    return _mention(me).search(text) is not None if me.username else False


def without_mention(text: str, me: BotIdentity) -> str:
    if not me.username:
        return text
    command = re.sub(rf"^(/\w+)@{re.escape(me.username)}(?!\w)", r"\1", text, flags=re.IGNORECASE)
    return _mention(me).sub("", command).strip(" \n\t,:") or text


def _mention(me: BotIdentity) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)@{re.escape(me.username or '')}(?!\w)", re.IGNORECASE)


def _title(chat: Mapping[str, Any], message: Mapping[str, Any]) -> str:
    """A display name of the chat: its title, or the sender's name."""
    title = chat.get("title")
    if isinstance(title, str) and title.strip():
        return f"the group {' '.join(title.split())}"
    author = message.get("from")
    parts = author if isinstance(author, Mapping) else chat
    name = " ".join(str(parts[key]) for key in ("first_name", "last_name") if isinstance(parts.get(key), str))
    username = parts.get("username")
    called = f" @{username}" if isinstance(username, str) else ""
    return " ".join(f"{name}{called}".split()) or "someone"


def _is_id(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
