"""The http action: one request, one response, sent by `wakeful.integrations.net.exchange`."""

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final
from urllib.parse import urlsplit

from wakeful.core.http_headers import sendable, wrong_headers
from wakeful.core.run.results import Done, Failed, Result, Throttled, Unconfirmed
from wakeful.core.run.runs import RungName
from wakeful.core.run.traces import trace_header
from wakeful.core.schedule.actions import OUTPUT_MAX, ActionSpec, Http
from wakeful.core.time.instants import format_instant
from wakeful.integrations.actions.cancellation import remote
from wakeful.integrations.actions.receipts import NO_LISTENER, Inbox, Receipts
from wakeful.integrations.actions.spec import expect
from wakeful.integrations.net.exchange import Exchanges, NoAnswer, NoConnection, NoRoom, Request, Response
from wakeful.integrations.system.text import one_line
from wakeful.ports.action import DEADLINE, CannotBegin, Detached, Fire, Ladder
from wakeful.ports.clock import Clock
from wakeful.ports.exchange import ExchangeListener, RequestContext

ACTION: Final = "http-request"
READ_MAX: Final = 16 * 1024 * 1024
"""How much is read beyond what is kept, so that a target that streams its progress can finish."""

REDIRECTS_MAX: Final = 5

_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", re.ASCII)
_PLACE: Final = re.compile(r"\$\{(WAKEFUL_[A-Z_]+)\}")
_UNSAFE: Final = re.compile(r"[\x00-\x20\x7f]")


class HttpAction:
    """Performs `Http`; any 2xx is success."""

    is_local = False

    def __init__(
        self, clock: Clock, listener: ExchangeListener | None = None, receipts: Receipts | None = None
    ) -> None:
        self._clock = clock
        self._receipts = receipts
        self._exchanges = Exchanges(clock, listener)

    def proves(self, spec: ActionSpec) -> RungName:
        return "finished"

    def check(self, spec: ActionSpec) -> str | None:
        request = expect(spec, Http)
        if request.receipt and self._receipts is None:
            return NO_LISTENER
        return _wrong_url(request.url) or _wrong_head(request.method, request.headers) or _wrong_body(request.body)

    async def perform(self, spec: ActionSpec, fire: Fire, ladder: Ladder) -> Result:
        request = expect(spec, Http)
        request = replace(request, headers=sendable(request.headers))  # stored by 0.2, it may have others
        wrong = self.check(request)
        if wrong is not None:
            return Failed(wrong, permanent=True)
        if not request.receipt or self._receipts is None:
            return await self._send(request, fire, ladder)
        with self._receipts.expecting(fire.run_id) as inbox:
            if inbox.receipt is not None and inbox.receipt.is_success:  # an earlier attempt did finish
                return inbox.receipt.result()
            sent = await self._send(with_receipt(request, fire), fire, ladder)
            return await _received(inbox, ladder) if isinstance(sent, Done) else sent

    async def _send(self, request: Http, fire: Fire, ladder: Ladder) -> Result:
        await self._exchanges.prepare()
        await ladder.climb("sent")
        try:
            with remote():
                response = await self._exchanges.send(_request(request, fire), RequestContext(ACTION, fire.slug))
        except NoRoom as error:
            raise CannotBegin(str(error)) from None
        except (NoConnection, NoAnswer) as error:
            return Failed(str(error))
        return self._result(response)

    async def close(self) -> None:
        await self._exchanges.close()

    def _result(self, response: Response) -> Result:
        text = response.text + response.body.note
        if response.is_ok:
            return Done(output=text)
        until = response.retry_at(self._clock.read().now)
        if until is not None:
            return Throttled(f"{response.line}: asked to retry at {format_instant(until)}", until)
        said = one_line(text)
        return Failed(f"{response.line}: {said}" if said else response.line, output=text)


async def _received(inbox: Inbox, ladder: Ladder) -> Result:
    """The target accepted the request: wait for its receipt. One that arrives after the deadline still counts."""
    await ladder.climb("accepted")
    try:
        while True:
            if inbox.receipt is not None and inbox.receipt.is_final:
                return inbox.receipt.result()
            if inbox.receipt is not None:
                await ladder.climb(inbox.receipt.rung)
            await inbox.bell.wait()
            inbox.bell.clear()
    except asyncio.CancelledError as cancelled:
        if DEADLINE in cancelled.args:
            return Unconfirmed("it was accepted, and no receipt arrived in time")
        raise Detached from None


def with_receipt(request: Http, fire: Fire) -> Http:
    """The request with `${WAKEFUL_…}` replaced in body and headers, so that its target can report."""
    values = {
        "WAKEFUL_RECEIPT_URL": fire.receipt_url or "",
        "WAKEFUL_IDEMPOTENCY_KEY": fire.idempotency_key,
        "WAKEFUL_RUN_ID": str(fire.run_id),
        "WAKEFUL_SLUG": fire.slug,
    }

    def filled(value: Any) -> Any:
        if isinstance(value, str):
            return _PLACE.sub(lambda match: values.get(match[1], match[0]), value)
        if isinstance(value, list):
            return [filled(item) for item in value]
        return {key: filled(item) for key, item in value.items()} if isinstance(value, Mapping) else value

    return replace(request, headers=filled(request.headers), body=filled(request.body))


def _request(request: Http, fire: Fire) -> Request:
    data, content_type = _payload(request.body)
    headers = _headers(request.headers, content_type, fire)
    return Request(request.method, request.url, headers, data, READ_MAX, OUTPUT_MAX, REDIRECTS_MAX)


def _payload(body: Any) -> tuple[bytes | None, str | None]:
    if body is None:
        return None, None
    if isinstance(body, str):
        return body.encode(), "text/plain; charset=utf-8"
    return json.dumps(body).encode(), "application/json"


def _headers(given: Mapping[str, str], content_type: str | None, fire: Fire) -> dict[str, str]:
    """The definition's headers, overridden by ours: every attempt must send the same key."""
    ours = {
        "Idempotency-Key": fire.idempotency_key,
        "X-Wakeful-Run": str(fire.run_id),
        "X-Wakeful-Attempt": str(fire.attempt),
    }
    ours |= trace_header(fire.traceparent)
    names = {name.lower() for name in ours}
    headers = {name: value for name, value in given.items() if name.lower() not in names} | ours
    present = {name.lower() for name in headers}
    if content_type is not None and "content-type" not in present:
        headers["Content-Type"] = content_type
    return headers


def _wrong_url(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        has_host = bool(parts.hostname) and parts.port != 0  # reading the port checks it
    except ValueError as error:
        return f"url '{url}' cannot be read ({error}); write it like https://example.com/path"
    if parts.scheme not in ("http", "https"):
        return f"url '{url}' is not a web address; start it with http:// or https://"
    if not has_host or _UNSAFE.search(url):
        return f"url '{url}' has no host, or contains spaces; write it like https://example.com/path"
    return None


def _wrong_head(method: str, headers: Mapping[str, str]) -> str | None:
    if not _TOKEN.fullmatch(method):
        return f"method '{method}' is not valid; use one such as POST"
    return wrong_headers(headers)


def _wrong_body(body: Any) -> str | None:
    try:
        _payload(body)
    except (TypeError, ValueError, RecursionError) as error:
        return f"body cannot be sent as JSON ({error}); use text, numbers, lists and objects"
    return None
