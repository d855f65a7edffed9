"""A Bot API server on loopback, written from the API's documentation: tokens, long polling, conflicts, chats."""

import asyncio
import itertools
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

TOKEN = "110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"
TEXT_MAX = 4096
POLL_MAX = 1.0  # seconds; a server may end a long poll before the time it was asked for
NOT_TOLD = {"ok": False}


class BotApi:
    """One bot, and the chats it is in."""

    def __init__(self) -> None:
        self.url = ""
        self.token = TOKEN
        self.me = {"id": 110201543, "is_bot": True, "first_name": "Wakeful", "username": "wakeful_test_bot"}
        self.webhook = ""
        self.is_shared = False  # another program polls as well: it ends every poll of ours
        self.is_down = False
        self.chats = {42}  # those that have written to the bot, or have it as a member
        self.blocked: set[int] = set()
        self.moved: dict[int, int] = {}
        self.sent: list[dict[str, Any]] = []
        self.calls: list[str] = []
        self._updates: list[dict[str, Any]] = []
        self._ids = itertools.count(900)
        self._poll = 0
        self._news = asyncio.Event()

    def write(self, chat: int, text: str | None = None, **fields: Any) -> int:
        """Someone writes in a chat; returns the id of the update."""
        kind = "private" if chat > 0 else "supergroup" if chat < -1_000_000_000_000 else "group"
        about = {"first_name": "Ann", "username": "ann"} if kind == "private" else {"title": "The Office"}
        message: dict[str, Any] = {
            "message_id": next(self._ids),
            "date": 1767225600,
            "chat": {"id": chat, "type": kind, **about},
            "from": {"id": abs(chat) % 10_000, "is_bot": False, "first_name": "Ann", "username": "ann"},
            **fields,
        }
        if text is not None:
            message["text"] = text
        number = next(self._ids)
        self._updates.append({"update_id": number, "message": message})
        self.chats.add(chat)
        self._news.set()
        return number

    @property
    def unconfirmed(self) -> int:
        """How many updates nobody has confirmed by a higher offset."""
        return len(self._updates)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        token, method = request.match_info["token"], request.match_info["method"]
        self.calls.append(method)
        if self.is_down:
            return _no(502, "Bad Gateway")
        if not re.fullmatch(r"\d+:[\w-]+", token):
            return _no(404, "Not Found")
        if token != self.token:
            return _no(401, "Unauthorized")
        body = await request.json() if request.can_read_body else {}
        match method:
            case "getMe":
                return _yes(self.me)
            case "getUpdates":
                return await self._get_updates(body)
            case "sendMessage":
                return self._send_message(body)
            case "getWebhookInfo":
                return _yes({"url": self.webhook, "has_custom_certificate": False, "pending_update_count": 0})
            case "deleteWebhook":
                self.webhook = ""
                return _yes(True)
            case _:
                return _no(404, "Not Found: method not found")

    async def _get_updates(self, body: dict[str, Any]) -> web.Response:
        if self.webhook:
            return _no(
                409,
                "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the "
                "webhook first",
            )
        self._poll += 1
        mine = self._poll
        self._news.set()  # whoever polls already is ended
        offset, timeout = int(body.get("offset", 0)), min(float(body.get("timeout", 0)), POLL_MAX)
        if offset < 0:
            self._updates = self._updates[offset:]
        else:
            self._updates = [one for one in self._updates if one["update_id"] >= offset]
        ends = asyncio.get_running_loop().time() + timeout
        while not self._updates or self.is_shared:
            left = ends - asyncio.get_running_loop().time()
            if self.is_shared or self._poll != mine:
                return _no(
                    409,
                    "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running",
                )
            if left <= 0:
                break
            self._news.clear()
            try:
                await asyncio.wait_for(self._news.wait(), min(left, 0.2))
            except TimeoutError:
                continue
        return _yes(self._updates[: int(body.get("limit", 100))])

    def _send_message(self, body: dict[str, Any]) -> web.Response:
        chat, text = int(body["chat_id"]), body.get("text", "")
        if chat in self.moved:
            new = self.moved[chat]
            parameters = {"migrate_to_chat_id": new}
            return _no(400, "Bad Request: group chat was upgraded to a supergroup chat", parameters=parameters)
        if chat not in self.chats:
            return _no(400, "Bad Request: chat not found")
        if chat in self.blocked:
            return _no(403, "Forbidden: bot was blocked by the user")
        if not text.strip():
            return _no(400, "Bad Request: message text is empty")
        if len(text.encode("utf-16-le")) // 2 > TEXT_MAX:
            return _no(400, "Bad Request: message is too long")
        self.sent.append({"chat": chat, "text": text})
        return _yes({"message_id": next(self._ids), "date": 1767225600, "chat": {"id": chat}, "text": text})


def _yes(result: Any) -> web.Response:
    return web.json_response({"ok": True, "result": result})


def _no(code: int, description: str, **more: Any) -> web.Response:
    return web.json_response({**NOT_TOLD, "error_code": code, "description": description, **more}, status=code)


@asynccontextmanager
async def bot_api() -> AsyncIterator[BotApi]:
    """A server that listens."""
    api = BotApi()
    app = web.Application()
    app.router.add_route("*", "/bot{token}/{method}", api.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    api.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield api
    finally:
        await runner.cleanup()
