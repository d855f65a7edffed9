"""Receipts: an agent reports its own progress by posting to a URL that only it was given.

The URL contains a token that signs the run's id with the daemon's secret. It is the same for every attempt of the run,
because it proves something about the run: an interrupted attempt may still finish, and then no further one is needed. A
receipt for a turn that waits in this process resolves it; any other is passed to `late`, which corrects an unconfirmed
or unknown run, and is kept for the run's next attempt.
"""

import asyncio
import base64
import hashlib
import hmac
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from wakeful.core.errors import refuse
from wakeful.core.run.results import Done, Failed
from wakeful.core.run.runs import RungName, rung_index
from wakeful.core.run.usage import Usage, usage_of
from wakeful.integrations.actions.reply import reply_of
from wakeful.integrations.system.text import one_line

KEPT_MAX: Final = 1_000
"""How many receipts are kept for runs without a waiting turn; the oldest are dropped first."""

SECRET_MIN: Final = 16
NO_LISTENER: Final = "receipt: this process does not listen, so no receipt can arrive; leave it out"
RUNGS: Final[tuple[RungName, ...]] = ("accepted", "started", "finished")

Posted: TypeAlias = Literal["taken", "late", "again", "forged"]
"""The result of a receipt: it resolved a waiting turn, no turn was waiting, it had no news, or it is not genuine."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """The progress an agent reports."""

    rung: RungName
    text: str | None = None
    usage: Usage | None = None
    error: str | None = None

    @property
    def is_final(self) -> bool:
        return self.error is not None or self.rung == "finished"

    @property
    def is_success(self) -> bool:
        return self.error is None and self.rung == "finished"

    def result(self, session_id: str | None = None) -> Done | Failed:
        """A final receipt as the result of the attempt."""
        if self.error is not None:
            return Failed(self.error, rung=self.rung, output=self.text, usage=self.usage)
        return Done(reply=self.text, usage=self.usage, session_id=session_id)


Late: TypeAlias = Callable[[int, Receipt], Awaitable[None]]


class Inbox:
    """Where the receipts of one waiting turn arrive."""

    def __init__(self, receipt: Receipt | None) -> None:
        self.receipt = receipt
        self.bell = asyncio.Event()

    @property
    def is_alive(self) -> bool:
        return self.receipt is not None and rung_index(self.receipt.rung) >= rung_index("started")

    @property
    def text(self) -> str | None:
        return None if self.receipt is None else self.receipt.text

    def put(self, receipt: Receipt) -> bool:
        """Accept a receipt if it is new; nothing follows a final one."""
        if not _is_news(self.receipt, receipt):
            return False
        self.receipt = _merged(self.receipt, receipt)
        self.bell.set()
        return True


class Receipts:
    """Signs receipt URLs, and accepts what is posted to them."""

    def __init__(self, secret: bytes, base_url: str | None = None) -> None:
        if len(secret) < SECRET_MIN:
            raise ValueError(f"a secret of {len(secret)} bytes is too short; use at least {SECRET_MIN} random ones")
        self._secret = secret
        self._base_url = None if base_url is None else base_url.rstrip("/")
        self._inboxes: dict[int, Inbox] = {}
        self._kept: OrderedDict[int, Receipt] = OrderedDict()

    def token(self, run_id: int) -> str:
        """The token that authenticates receipts for this run."""
        digest = hmac.new(self._secret, b"receipt:%d" % run_id, hashlib.sha256).digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()

    def url(self, run_id: int) -> str | None:
        """The URL for this run's receipt; None if this process does not listen."""
        if self._base_url is None:
            return None
        return f"{self._base_url}/api/runs/{run_id}/receipt?token={self.token(run_id)}"

    def is_genuine(self, run_id: int, token: str) -> bool:
        """Whether the token is genuine. Compared in constant time, so that a token cannot be guessed character by
        character."""
        return hmac.compare_digest(self.token(run_id).encode(), token.encode("utf-8", "replace"))

    async def post(
        self,
        run_id: int,
        token: str,
        rung: str,
        text: object = None,
        usage: object = None,
        error: object = None,
        *,
        late: Late | None = None,
    ) -> Posted:
        """Accept a receipt; `late` is called with one that no turn waits for. Raises `Invalid` for an unreadable one,
        after the token was verified."""
        if not self.is_genuine(run_id, token):
            return "forged"
        receipt = _read(rung, text, usage, error)
        inbox = self._inboxes.get(run_id)
        if inbox is not None:
            return "taken" if inbox.put(receipt) else "again"
        if not _is_news(self._kept.get(run_id), receipt):
            return "again"
        if late is not None:  # before responding: an acknowledged receipt must not be lost (L7)
            await late(run_id, receipt)
        self._keep(run_id, receipt)
        return "late"

    @contextmanager
    def expecting(self, run_id: int) -> Iterator[Inbox]:
        """Accept receipts of this run; one that arrived earlier is in the inbox from the start."""
        kept = self._kept.pop(run_id, None)
        # An error reported for an earlier attempt does not apply to this one.
        inbox = Inbox(kept if kept is not None and kept.is_success else None)
        self._inboxes[run_id] = inbox
        try:
            yield inbox
        finally:
            if self._inboxes.get(run_id) is inbox:  # after a lost lease a newer attempt may have taken its place
                del self._inboxes[run_id]

    def kept(self, run_id: int) -> Receipt | None:
        """A receipt that arrived when no turn was waiting."""
        return self._kept.get(run_id)

    def _keep(self, run_id: int, receipt: Receipt) -> None:
        inbox = self._inboxes.get(run_id)
        if inbox is not None:  # an attempt started while `late` was running
            inbox.put(receipt)
            return
        self._kept[run_id] = _merged(self._kept.pop(run_id, None), receipt)
        while len(self._kept) > KEPT_MAX:
            self._kept.popitem(last=False)


def _is_news(known: Receipt | None, receipt: Receipt) -> bool:
    if known is None:
        return True
    return not known.is_final and (receipt.is_final or rung_index(receipt.rung) > rung_index(known.rung))


def _merged(known: Receipt | None, receipt: Receipt) -> Receipt:
    """The newer receipt; earlier text and usage are kept unless it replaces them."""
    if known is None:
        return receipt
    text = known.text if receipt.text is None else receipt.text
    usage = known.usage if receipt.usage is None else receipt.usage
    return Receipt(receipt.rung, text, usage, receipt.error)


def _read(rung: object, text: object, usage: object, error: object) -> Receipt:
    known = next((name for name in RUNGS if name == rung), None)
    if rung is None:
        refuse("rung", "is missing; write accepted, started or finished")
    if known is None:
        refuse("rung", f"'{rung!s:.50}' is not one of accepted, started, finished; write one of them")
    if text is not None and not isinstance(text, str):
        refuse("text", f"is {type(text).__name__}; write the reply as text, or leave it out")
    if error is not None and not (isinstance(error, str) and error.strip()):
        refuse("error", "is empty; write what went wrong as text, or leave it out")
    return Receipt(known, reply_of(text), usage_of(usage), None if error is None else one_line(error))
