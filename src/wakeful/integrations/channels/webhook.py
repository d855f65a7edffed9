"""A webhook: each message is one POST of JSON, identified by its delivery id."""

import json
from typing import Final
from urllib.parse import urlsplit

from wakeful.core.run.traces import trace_header
from wakeful.core.time.instants import format_instant
from wakeful.integrations.channels.http_outcome import ANSWER_WITHIN, outcome_of
from wakeful.integrations.net.exchange import Exchanges, NoAnswer, NoConnection, NotAllowed, Request
from wakeful.integrations.net.trouble import host
from wakeful.ports.channel import Outcome, OutgoingMessage, Refused, Unsent
from wakeful.ports.clock import Clock
from wakeful.ports.exchange import ExchangeListener, RequestContext

_READ_MAX: Final = 16 * 1024


class WebhookChannel:
    """Posts messages to a URL; to private networks only if that is allowed."""

    kind = "webhook"
    address = "url"
    to: str | None = None

    def __init__(
        self,
        url: str,
        clock: Clock,
        listener: ExchangeListener | None = None,
        *,
        token: str | None = None,
        allow_private: bool = False,
    ) -> None:
        self._url = url
        self._token = token
        self._clock = clock
        self._exchanges = Exchanges(clock, listener, is_public_only=not allow_private)

    async def send(self, message: OutgoingMessage) -> Outcome:
        try:
            response = await self._exchanges.send(
                self._request(message), RequestContext("deliver", slug=message.slug), limit=ANSWER_WITHIN
            )
        except NotAllowed as error:
            return Refused(str(error))
        except (NoConnection, NoAnswer) as error:
            return Unsent(str(error))
        return outcome_of(response, self._clock.read().now, response.said())

    async def prepare(self) -> None:
        await self._exchanges.prepare()

    async def close(self) -> None:
        await self._exchanges.close()

    def _request(self, message: OutgoingMessage) -> Request:
        body = {
            "id": message.delivery_id,
            "text": message.text,
            "channel": message.channel,
            "to": message.to,
            "slug": message.slug,
            "runId": None if message.run_id is None else str(message.run_id),
            "at": format_instant(message.at),
        }
        headers = {"Content-Type": "application/json", "X-Wakeful-Delivery": message.delivery_id}
        headers |= trace_header(message.traceparent)
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        data = json.dumps({name: value for name, value in body.items() if value is not None}).encode()
        # Many services put the secret into the path, so only the host is logged.
        shown = f"{urlsplit(self._url).scheme}://{host(self._url)}/…"
        return Request("POST", self._url, headers, data, read_max=_READ_MAX, shown=shown)
