"""Reading the body of an answer: a little is kept, little more is read, whatever the other side sends."""

import zlib
from collections.abc import AsyncIterable, Callable, Iterable, Iterator
from typing import Final

from wakeful.actions.text import HeadTail
from wakeful.core.actions import OUTPUT_MAX

READ_MAX: Final = 16 * 1024 * 1024
"""Read on beyond what is kept, so that a target that streams its progress can finish; but not for ever."""

_PIECE_MAX: Final = 64 * 1024
_ZLIB_OR_GZIP: Final = zlib.MAX_WBITS | 32


class Body:
    """What was kept of a body."""

    def __init__(self) -> None:
        self._kept = HeadTail(OUTPUT_MAX)
        self._note = ""

    async def read(self, chunks: AsyncIterable[bytes], coding: str) -> None:
        """Read the chunks, unpacking gzip and deflate, until the end or the limit."""
        unpack = _unpacker(coding)
        received = 0
        async for chunk in chunks:
            received += len(chunk)
            if not self._keep(unpack(chunk)) or received >= READ_MAX:
                self._note = f"\n[the answer goes on; reading stopped after {max(received, self._kept.size)} bytes]"
                return

    def text(self, charset: str | None) -> str:
        """As text, in the charset the answer names if there is such a one."""
        try:
            return self._kept.text(charset or "utf-8") + self._note
        except (LookupError, ValueError):
            return self._kept.text() + self._note

    def _keep(self, pieces: Iterable[bytes]) -> bool:
        """False when enough was read. Pieces are unpacked one at a time, so a bomb goes off only up to there."""
        for piece in pieces:
            self._kept.feed(piece)
            if self._kept.size >= READ_MAX:
                return False
        return True


class _Unpacker:
    def __init__(self) -> None:
        self._stream = zlib.decompressobj(_ZLIB_OR_GZIP)

    def __call__(self, chunk: bytes) -> Iterator[bytes]:
        try:
            piece = self._stream.decompress(chunk, _PIECE_MAX)
            while piece:
                yield piece
                piece = self._stream.decompress(self._stream.unconsumed_tail, _PIECE_MAX)
        except zlib.error:
            yield b"[cannot be unpacked]"


def _as_it_is(chunk: bytes) -> Iterator[bytes]:
    yield chunk


def _unpacker(coding: str) -> Callable[[bytes], Iterator[bytes]]:
    return _Unpacker() if coding in ("gzip", "x-gzip", "deflate") else _as_it_is
