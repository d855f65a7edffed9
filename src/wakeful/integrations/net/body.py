"""Reads the body of a response, with limits on what is read and what is kept."""

import zlib
from collections.abc import AsyncIterable, Callable, Iterable, Iterator
from typing import Final

from wakeful.integrations.system.text import HeadTail

_PIECE_MAX: Final = 64 * 1024
_ZLIB_OR_GZIP: Final = zlib.MAX_WBITS | 32


class Body:
    """A bounded body: keeps at most `keep_max` bytes, its beginning and its end, of at most `read_max` read."""

    def __init__(self, keep_max: int, read_max: int) -> None:
        self._kept = HeadTail(keep_max)
        self._read_max = read_max
        self._received = 0
        self.is_whole = True  # read to its end, whether or not all of it was kept

    async def read(self, chunks: AsyncIterable[bytes], coding: str) -> None:
        """Read the chunks, decompressing gzip and deflate, until the end or the limit."""
        unpack = _unpacker(coding)
        async for chunk in chunks:
            self._received += len(chunk)
            if not self._keep(unpack(chunk)) or self._received > self._read_max:
                self.is_whole = False
                return

    @property
    def size(self) -> int:
        """How many decompressed bytes were read."""
        return self._kept.size

    @property
    def note(self) -> str:
        """A note for people if it was truncated."""
        read = max(self._received, self._kept.size)
        return "" if self.is_whole else f"\n[truncated: reading stopped after {read} bytes]"

    def text(self, charset: str | None = None) -> str:
        """The body as text, in the response's charset if known."""
        try:
            return self._kept.text(charset or "utf-8")
        except (LookupError, ValueError):
            return self._kept.text()

    def _keep(self, pieces: Iterable[bytes]) -> bool:
        """False if the limit is exceeded. Decompressed piece by piece, which bounds a decompression bomb."""
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
