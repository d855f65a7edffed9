"""A guard against requests into private networks.

A configured delivery URL must not give access to services on this machine, on its network, or in its cloud. This module
resolves and checks names, and connects to exactly the checked address, so a DNS change in between has no effect.
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
    """The host as HTTP clients normalise it: full-width digits and ideographic full stops become plain ones."""
    return unicodedata.normalize("NFKC", host).replace("\u3002", ".")


def is_public(address: str) -> bool:
    """Whether an address is on the public internet, not on this machine or in a private network."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    inner = _embedded(ip)
    if inner is not None:
        return is_public(str(inner))
    return ip.is_global and not (ip.is_multicast or ip.is_reserved or ip.is_unspecified or ip.is_link_local)


def _embedded(ip: _Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address embedded in an IPv6 address: mapped, translated, or tunnelled."""
    if isinstance(ip, ipaddress.IPv4Address):
        return None
    if ip in _NAT64:
        return ipaddress.IPv4Address(int(ip) & 0xFFFF_FFFF)
    return ip.ipv4_mapped or ip.sixtofour


def check_literal(url: str) -> None:
    """Refuse a private IP literal; names are checked when they are resolved."""
    host = plain_name(urlsplit(url).hostname or "")
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return
    if not is_public(host):
        raise PrivateAddress(host)


def public_socket(info: "AddrInfoType") -> socket.socket:
    """The socket for a connection, refused unless its address is public: this is the address actually used."""
    family, kind, protocol, _, address = info
    if not is_public(str(address[0])):
        raise PrivateAddress(str(address[0]))
    return socket.socket(family, kind, protocol)


def public_resolver() -> "AbstractResolver":
    """Resolves names to public addresses, and refuses names without any."""
    from aiohttp.abc import AbstractResolver
    from aiohttp.resolver import ThreadedResolver

    class PublicResolver(AbstractResolver):
        def __init__(self) -> None:
            self._inner = ThreadedResolver()

        async def resolve(self, host: str, port: int = 0, family: Any = socket.AF_INET) -> "list[ResolveResult]":
            addresses = await self._inner.resolve(host, port, family)
            public = [address for address in addresses if is_public(address["host"])]
            if not public:
                raise PrivateAddress(host)
            return public

        async def close(self) -> None:
            await self._inner.close()

    return PublicResolver()
