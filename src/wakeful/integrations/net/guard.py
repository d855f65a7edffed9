"""A guard against requests into private networks.

An address that a person wrote down for deliveries must not become a way to whatever listens on this machine, on its
network, or in the cloud around it. Names are resolved here, what they resolve to is looked at here, and exactly that is
connected to: a name that means something else a moment later changes nothing.
"""

import ipaddress
import socket
import unicodedata
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import urlsplit

from wakeful.integrations.net.trouble import PrivateAddress

if TYPE_CHECKING:
    from aiohappyeyeballs import AddrInfoType
    from aiohttp.abc import AbstractResolver, ResolveResult

_Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the host. Names under `localhost` never leave it (RFC 6761)."""
    name = host.strip("[]").rstrip(".").lower()
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost" or name.endswith(".localhost")


def plain_name(host: str) -> str:
    """The host as HTTP clients read it: full-width digits and ideographic full stops are plain ones to them."""
    return unicodedata.normalize("NFKC", host).replace("\u3002", ".")


def is_public(address: str) -> bool:
    """Whether an address lies in the open internet, and not on this machine or in a network that is somebody's own."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    inner = _embedded(ip)
    if inner is not None:
        return is_public(str(inner))
    return ip.is_global and not (ip.is_multicast or ip.is_reserved or ip.is_unspecified or ip.is_link_local)


def _embedded(ip: _Address) -> ipaddress.IPv4Address | None:
    """The address of the old kind that one of the new kind leads to: mapped, translated, or tunnelled."""
    if isinstance(ip, ipaddress.IPv4Address):
        return None
    if ip in _NAT64:
        return ipaddress.IPv4Address(int(ip) & 0xFFFF_FFFF)
    return ip.ipv4_mapped or ip.sixtofour


def check_literal(url: str) -> None:
    """Refuse an address that is written out; names are looked at when they are resolved."""
    host = plain_name(urlsplit(url).hostname or "")
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return
    if not is_public(host):
        raise PrivateAddress(host)


def public_socket(info: "AddrInfoType") -> socket.socket:
    """The socket for a connection, refused unless its address is public: this is the address really connected to."""
    family, kind, protocol, _, address = info
    if not is_public(str(address[0])):
        raise PrivateAddress(str(address[0]))
    return socket.socket(family, kind, protocol)


def public_resolver() -> "AbstractResolver":
    """Resolves names to what lies in the open internet, and refuses those that lead nowhere else."""
    from aiohttp.abc import AbstractResolver
    from aiohttp.resolver import ThreadedResolver

    class PublicResolver(AbstractResolver):
        def __init__(self) -> None:
            self._inner = ThreadedResolver()

        async def resolve(self, host: str, port: int = 0, family: Any = socket.AF_INET) -> "list[ResolveResult]":
            found = await self._inner.resolve(host, port, family)
            public = [one for one in found if is_public(one["host"])]
            if not public:
                raise PrivateAddress(host)
            return public

        async def close(self) -> None:
            await self._inner.close()

    return PublicResolver()
