"""What can go wrong on the way of a request, in a user's words."""

import socket
from urllib.parse import urlsplit

from wakeful.integrations.system.text import one_line


class NoConnection(Exception):
    """The request never left: it is certain that the target did not get it."""


class NotAllowed(NoConnection):
    """The request never left, because it may not go there."""


class PrivateAddress(OSError):
    """A host that lies on this machine or in a private network."""

    def __init__(self, host: str) -> None:
        super().__init__(f"{host} lies on this machine or in a private network")


class NoAnswer(Exception):
    """The request left and no answer came of it: the target may have got it."""


def host(url: str) -> str:
    """Who is asked; without the password."""
    return urlsplit(url).netloc.rpartition("@")[2]


def no_answer(url: str, said: str) -> NoAnswer:
    return NoAnswer(one_line(f"{host(url)}: {said}"))


def translated(error: Exception, url: str, redirects_max: int) -> NoConnection | NoAnswer:
    """The error as one of ours, with a sentence."""
    import aiohttp

    kind: type[NoConnection | NoAnswer] = NoConnection
    match error:
        case NoAnswer():
            return error
        case PrivateAddress() | aiohttp.ClientConnectorError(os_error=PrivateAddress()):
            kind, said = NotAllowed, "lies on this machine or in a private network; if that is meant, allow_private"
        case aiohttp.TooManyRedirects():
            kind, said = NoAnswer, f"redirected more than {redirects_max} times; write the final address"
        case aiohttp.ClientConnectorError(os_error=socket.gaierror()):
            said = "there is no such host; check the name, and the network"
        case aiohttp.ClientSSLError():
            said = f"no secure connection ({error}); check the certificate"
        case aiohttp.ClientConnectorError(os_error=ConnectionRefusedError()):
            said = "connection refused; is it running, and on this port?"
        case aiohttp.ClientConnectorError(os_error=OSError(strerror=reason)):
            said = f"cannot connect ({reason})"
        case aiohttp.InvalidURL():
            said = "this is no web address; write it like https://example.com"
        case aiohttp.ClientPayloadError():
            kind, said = NoAnswer, "the answer broke off"
        case _:
            kind, said = NoAnswer, f"{type(error).__name__}: {error}"
    return kind(one_line(f"{host(url)}: {said}"))
