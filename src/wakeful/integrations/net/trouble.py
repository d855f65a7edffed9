"""Network errors with readable messages."""

import socket
from urllib.parse import urlsplit

from wakeful.core.run.resources import is_lack
from wakeful.integrations.system.text import one_line


class NoConnection(Exception):
    """The request was not sent: the target certainly did not get it."""


class NoRoom(NoConnection):
    """The request was not sent because this system has no descriptors or memory left."""


class NotAllowed(NoConnection):
    """The request was not sent because its target is not allowed."""


class PrivateAddress(OSError):
    """A host on this machine or in a private network."""

    def __init__(self, host: str) -> None:
        super().__init__(f"{host} is on this machine or in a private network")


class NoAnswer(Exception):
    """The request was sent but got no complete response: the target may have received it."""

    status: int | None = None  # of the response, if it began


def host(url: str) -> str:
    """The host, without the password."""
    return urlsplit(url).netloc.rpartition("@")[2]


def no_answer(url: str, said: str) -> NoAnswer:
    return NoAnswer(one_line(f"{host(url)}: {said}"))


def translated(error: Exception, url: str, redirects_max: int) -> NoConnection | NoAnswer:
    """The error as one of this module's errors, with a message."""
    import aiohttp

    kind: type[NoConnection | NoAnswer] = NoConnection
    match error:
        case NoAnswer():
            return error
        case PrivateAddress() | aiohttp.ClientConnectorError(os_error=PrivateAddress()):
            kind, said = NotAllowed, "is on this machine or in a private network; if intended, set allow_private"
        case aiohttp.TooManyRedirects():
            kind, said = NoAnswer, f"redirected more than {redirects_max} times; write the final address"
        case aiohttp.ClientConnectorError(os_error=socket.gaierror()):
            said = "there is no such host; check the name, and the network"
        case aiohttp.ClientSSLError():
            said = f"no secure connection ({error}); check the certificate"
        case aiohttp.ClientConnectorError(os_error=OSError() as refusal) if is_lack(refusal):
            kind, said = NoRoom, f"cannot connect ({refusal.strerror})"
        case OSError() | MemoryError() if is_lack(error):  # before there was a connection: see `_once`
            kind, said = NoRoom, f"cannot connect ({getattr(error, 'strerror', None) or 'out of memory'})"
        case aiohttp.ClientConnectorError(os_error=ConnectionRefusedError()):
            said = "connection refused; is the server running on this port?"
        case aiohttp.ClientConnectorError(os_error=OSError(strerror=reason)):
            said = f"cannot connect ({reason})"
        case aiohttp.InvalidURL():
            said = "this is not a web address; write it like https://example.com"
        case aiohttp.ClientPayloadError():
            kind, said = NoAnswer, "the connection broke during the response"
        case _:
            kind, said = NoAnswer, f"{type(error).__name__}: {error}"
    return kind(one_line(f"{host(url)}: {said}"))
