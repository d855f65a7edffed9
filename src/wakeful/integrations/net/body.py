"""Reading the body of an answer: a little is kept, little more is read, whatever the other side sends."""

import zlib
from collections.abc import AsyncIterable, Callable, Iterable, Iterator
from typing import Final

from wakeful.integrations.system.text import HeadTail

_PIECE_MAX: Final = 64 * 1024
_ZLIB_OR_GZIP: Final = zlib.MAX_WBITS | 32


class Body:
    """What was kept of a body: at most `keep_max` bytes, its beginning and its end, of at most `read_max` read."""

    def __init__(self, keep_max: int, read_max: int) -> None:
        self._kept = HeadTail(keep_max)
        self._read_max = read_max
        self._received = 0
        self.is_whole = True  # read to its end; how much of it was kept is another matter

    async def read(self, chunks: AsyncIterable[bytes], coding: str) -> None:
        """Read the chunks, unpacking gzip and deflate, until the end or the limit."""
        unpack = _unpacker(coding)
        async for chunk in chunks:
            self._received += len(chunk)
            if not self._keep(unpack(chunk)) or self._received > self._read_max:
                self.is_whole = False
                return

    @property
    def size(self) -> int:
        """How many bytes were read, unpacked."""
        return self._kept.size

    @property
    def note(self) -> str:
        """For people: that it was cut off."""
        read = max(self._received, self._kept.size)
        return "" if self.is_whole else f"\n[the answer goes on; reading stopped after {read} bytes]"

    def text(self, charset: str | None = None) -> str:
        """As text, in the charset the answer names if there is such a one."""
        try:
            return self._kept.text(charset or "utf-8")
        except (LookupError, ValueError):
            return self._kept.text()

    def _keep(self, pieces: Iterable[bytes]) -> bool:
        """False when there is more than may be read. Unpacked piece by piece, so a bomb goes off only up to there."""
        for piece in pieces:
            room = self._read_max - self._kept.size
            self._kept.feed(piece[:room])
            if len(piece) > room:
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
