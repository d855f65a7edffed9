"""The kinds of settings that are hosts, networks and URLs."""

from __future__ import annotations

import ipaddress
import re
from typing import Any, Final
from urllib.parse import urlsplit

from wakeful.config.faults import refusal
from wakeful.config.kinds.reading import kind_of_value, shown
from wakeful.config.kinds.texts import plain_text
from wakeful.integrations.net.guard import is_loopback, is_public, plain_name

_HOST_NAME: Final = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63})*\.?", re.ASCII)


def _host(value: Any) -> str:
    address = plain_text(value, 253)
    if address.startswith("[") and address.endswith("]"):
        raise refusal(f"{shown(address)} has brackets; write the address alone, like ::1")
    try:
        ipaddress.ip_address(address)
    except ValueError:
        if not _HOST_NAME.fullmatch(address) or re.fullmatch(r"[\d.]+", address):
            raise refusal(
                f"{shown(address)} is not an address to listen on; write a host without a port, like 127.0.0.1"
            ) from None
    return address


HOST: Final = kind_of_value("host", '"127.0.0.1"', _host)


def _network(value: Any) -> str:
    address = plain_text(value, 100)
    try:
        ipaddress.ip_network(address, strict=False)
    except ValueError:
        raise refusal(f"{shown(address)} is not an address or a network; write it like 127.0.0.1") from None
    return address


NETWORK: Final = kind_of_value("address or network", '"127.0.0.1"', _network)
"""An address, or a network such as 10.0.0.0/8."""


def is_private(name: str) -> bool:
    """Whether the host, as written, is this machine or in a private network."""
    name = plain_name(name)
    try:
        ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return is_loopback(name)
    return not is_public(name)


def check_web_address(address: str, *, https: bool = False, password: bool = False) -> None:
    """Refuse an unusable URL. It is quoted only once it is known to contain no password."""
    try:
        parts = urlsplit(address)
        port, server, has_user = parts.port, parts.hostname, "@" in parts.netloc
    except ValueError:
        raise refusal("is not a valid URL; write it like https://host:port/path") from None
    if has_user and not password:
        raise refusal("contains a user or password, which would be shown; remove it from the URL")
    if parts.scheme not in ("http", "https") or not server or port == 0 or not address.isprintable() or " " in address:
        quoted = "" if password or has_user or parts.query else f"{shown(address)} "
        raise refusal(f"{quoted}is not an http URL; write it like https://host:port/path")
    if https and parts.scheme == "http" and not is_loopback(server):
        raise refusal("sends the key unencrypted; write https:// (http:// is for this machine only)")


def _address(value: Any) -> str:
    address = plain_text(value, 2_000)
    check_web_address(address)
    return address


def _https_address(value: Any) -> str:
    address = plain_text(value, 2_000)
    check_web_address(address, https=True)
    return address


URL: Final = kind_of_value("http or https URL", '"https://…"', _address)
HTTPS_URL: Final = kind_of_value("https URL (http only on this machine)", '"https://…"', _https_address)
