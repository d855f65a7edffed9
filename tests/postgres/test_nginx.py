"""Two nodes behind the real nginx, with TLS and a host name of its own, by the configuration of docs/access.md."""

import asyncio
import re
import shutil
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest

from access import TOKEN
from delivery.running import Running, daemon
from docs.blocks import ROOT, blocks

NAME = "wakeful.example.com"
NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
WITHIN = 60.0

pytestmark = pytest.mark.skipif(NGINX is None or shutil.which("openssl") is None, reason="nginx or openssl is missing")


def configuration(folder: Path, port: int, upstream: str) -> str:
    """The block of the page, with this port, this certificate and this upstream."""
    (block,) = [one.text for one in blocks(ROOT / "docs" / "access.md") if "proxy_pass" in one.text]
    for before, after in (
        ("listen 443 ssl;", f"listen 127.0.0.1:{port} ssl;"),
        ("/etc/ssl/wakeful.pem", str(folder / "tls.pem")),
        ("/etc/ssl/wakeful.key", str(folder / "tls.key")),
        ("http://127.0.0.1:8377", upstream),
        # The proxy of this test has no port of its own to be left out.
        ("Host $host;", "Host $http_host;"),
    ):
        assert before in block, before
        block = block.replace(before, after)
    return block


def free_port() -> int:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return int(door.getsockname()[1])


@asynccontextmanager
async def nginx(folder: Path, upstreams: dict[int, str]) -> AsyncIterator[None]:
    """The real nginx in the foreground, one server for each port."""
    folder.mkdir()
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={NAME}"),
            *("-addext", f"subjectAltName=DNS:{NAME}", "-keyout", str(folder / "tls.key")),
            *("-out", str(folder / "tls.pem")),
        ],
        check=True,
        capture_output=True,
    )
    servers = "\n".join(configuration(folder, port, upstream) for port, upstream in upstreams.items())
    temporary = "".join(
        f"{kind}_temp_path {folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"daemon off; pid {folder}/pid; error_log stderr; worker_processes 1;\nevents {{}}\n"
        f"http {{ access_log off; {temporary} {servers} }}\n"
    )
    assert NGINX is not None
    child = await asyncio.create_subprocess_exec(NGINX, "-c", str(folder / "nginx.conf"), "-p", str(folder))
    try:
        for port in upstreams:
            await _listening(port, child)
        yield
    finally:
        child.terminate()
        await asyncio.wait_for(child.wait(), WITHIN)


async def _listening(port: int, child: asyncio.subprocess.Process) -> None:
    async with asyncio.timeout(WITHIN):
        while child.returncode is None:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
                continue
            writer.close()
            return
    raise AssertionError("nginx ended")


class Browser:
    """A client that reaches the proxy by its name, keeps cookies, and says from which page it comes."""

    def __init__(self, session: aiohttp.ClientSession, port: int, tls: ssl.SSLContext) -> None:
        self._session = session
        self._tls = tls
        self.origin = f"https://{NAME}:{port}"

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, str]:
        async with self._session.request(
            method, self.origin + path, json=body, headers={"Origin": self.origin, **headers}, ssl=self._tls
        ) as response:
            return response.status, await response.text()


class OnlyLoopback(aiohttp.abc.AbstractResolver):
    """The proxy's name leads to this machine."""

    async def resolve(self, host: str, port: int = 0, family: Any = socket.AF_INET) -> Any:
        assert host == NAME
        return [{"hostname": host, "host": "127.0.0.1", "port": port, "family": socket.AF_INET, "proto": 0, "flags": 0}]

    async def close(self) -> None: ...


async def test_everything_works_through_nginx_on_both_of_two_nodes(tmp_path: Path, url: str) -> None:
    """Page, login, stream, API, receipts and hooks; without a token nothing does, and a foreign Origin gets 403."""
    ports = [free_port(), free_port()]

    def settings(port: int) -> str:
        return (
            f'[server]\npublic_url = "https://{NAME}:{port}"\ntrusted_proxies = ["127.0.0.1"]\n'
            f'allowed_hosts = ["{NAME}"]\n[store]\nurl = "{url}"\n[hooks.door]\ntoken = "hook-secret-1"\n'
            '[heartbeat]\nenabled = true\nevery = "1h"\n'
        )

    async with (
        daemon(tmp_path / "a", settings(ports[0])) as one,
        daemon(tmp_path / "b", settings(ports[1])) as other,
        nginx(tmp_path / "nginx", {ports[0]: one.address, ports[1]: other.address}),
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(resolver=OnlyLoopback())) as session,
        aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(resolver=OnlyLoopback()), cookie_jar=aiohttp.DummyCookieJar()
        ) as stranger,
    ):
        tls = ssl.create_default_context(cafile=str(tmp_path / "nginx" / "tls.pem"))
        for port in ports:
            await _nothing_without_a_token(Browser(stranger, port, tls))
        # The cookie of one node is for its name, whatever the port: the other accepts the same session.
        assert (await Browser(session, ports[0], tls).ask("POST", "/login", {"token": TOKEN}))[0] == 204
        for port, node in zip(ports, (one, other), strict=True):
            await _everything_with_a_session(Browser(session, port, tls), node)


async def _nothing_without_a_token(browser: Browser) -> None:
    for method, path in (
        ("GET", "/api/schedule"),
        ("GET", "/api/stream"),
        ("GET", "/metrics"),
        ("PUT", "/api/schedule/x"),
    ):
        assert (await browser.ask(method, path))[0] == 401, path
    assert (await browser.ask("POST", "/api/hooks/door"))[0] == 401
    assert (await browser.ask("GET", "/healthz"))[1] in ('{"status":"ok"}', '{"status":"degraded"}')
    assert (await browser.ask("GET", "/"))[0] == 200


async def _everything_with_a_session(browser: Browser, node: Running) -> None:
    slug = f"job-{urlsplit(node.address).port}"
    printing = {"schedule": {"type": "manual"}, "command": {"argv": ["printenv", "WAKEFUL_RECEIPT_URL"]}}
    assert (await browser.ask("PUT", f"/api/schedule/{slug}", printing))[0] == 201
    status, text = await browser.ask("POST", f"/api/schedule/{slug}/run?wait=true")
    assert status == 200
    receipt = re.search(rf"https://{NAME}:\d+(/api/runs/\d+/receipt\?token=[\w-]+)", text)
    assert receipt is not None, text  # agents elsewhere reach it by the public address
    assert (await browser.ask("POST", receipt[1], {"rung": "finished"}))[0] == 200
    assert (await browser.ask("POST", "/api/hooks/door", Authorization="Bearer hook-secret-1"))[0] == 202
    assert (await browser.ask("GET", "/api/schedule", Origin="https://evil.example"))[0] == 403
    stream = browser._session.get(f"{browser.origin}/api/stream", ssl=browser._tls)
    async with stream as told, asyncio.timeout(WITHIN):
        assert told.status == 200
        await browser.ask("POST", f"/api/schedule/{slug}/run")
        async for line in told.content:
            if slug.encode() in line:
                break
