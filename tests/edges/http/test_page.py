"""The files of the page: all there, never inline, loaded from nowhere else, the same for everybody."""

import json
import posixpath
import re
from pathlib import Path

from edges.http.kit import Client, served
from wakeful.server.http import Access, NamedToken
from wakeful.server.page import PREFIX, read_files

IMPORT = re.compile(r"""(?:from|import)\s+"(\.{1,2}/[^"]+)\"""")
MARKUP = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc|DOMParser")


async def test_the_page_is_served_with_a_strict_policy(api: Client) -> None:
    """Only its own files, nothing inline, no markup made of text, in nobody's frame."""
    answer = await api.get("/")
    assert (answer.status, answer.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    policy = answer.headers["Content-Security-Policy"].split("; ")
    assert {"default-src 'self'", "require-trusted-types-for 'script'", "frame-ancestors 'none'"} <= set(policy)
    assert not any("unsafe" in part or "http" in part or "*" in part for part in policy)
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert not re.search(r"<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=", answer.body)


async def test_everything_the_page_names_is_there(api: Client) -> None:
    """Each file it links, and each module that a module imports."""
    page = (await api.get("/")).body
    files = read_files()
    for path in re.findall(r'(?:src|href)="(/page/[^"]+)"', page):
        assert path.removeprefix(PREFIX) in files, path
        assert path.endswith(".png") or (await api.get(path)).status == 200, path
    manifest = json.loads(files["page.webmanifest"].content)
    assert all(icon["src"].removeprefix(PREFIX) in files for icon in manifest["icons"])
    for name, file in files.items():
        if name.endswith(".js"):
            for wanted in IMPORT.findall(file.content.decode()):
                assert posixpath.normpath(posixpath.join(posixpath.dirname(name), wanted)) in files, (name, wanted)


def test_no_module_makes_markup_of_text_or_asks_anybody_else() -> None:
    """The policy would stop it; here it is not even written."""
    for name, file in read_files().items():
        if file.media_type == "image/png":
            continue
        text = file.content.decode()
        assert not MARKUP.search(text), name
        foreign = [found for found in re.findall(r"https?://[^\s\"'`]+", text) if "www.w3.org" not in found]
        assert all(found.startswith("http://127.0.0.1") for found in foreign), (name, foreign)


async def test_files_are_sent_compressed_to_those_who_take_it(api: Client) -> None:
    """Under the same tag, so that either is confirmed later."""
    plain = await api.get(f"{PREFIX}main.js", headers={"Accept-Encoding": "identity"})
    packed = await api.get(f"{PREFIX}main.js", headers={"Accept-Encoding": "gzip"})
    assert "Content-Encoding" not in plain.headers
    assert packed.headers["Content-Encoding"] == "gzip"
    assert int(packed.headers["Content-Length"]) < int(plain.headers["Content-Length"]) / 2
    assert packed.body == plain.body
    again = await api.get(f"{PREFIX}main.js", headers={"If-None-Match": packed.headers["ETag"]})
    assert (again.status, again.body) == (304, "")


async def test_a_file_is_sent_once_and_then_confirmed(api: Client) -> None:
    """304 while it is the same; 404 for what is none of its files, however it is written."""
    first = await api.get(f"{PREFIX}main.js")
    assert (first.status, first.headers["Content-Type"]) == (200, "text/javascript; charset=utf-8")
    again = await api.get(f"{PREFIX}main.js", headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status, again.body) == (304, "")
    for path in (
        "",
        "nothing.js",
        "../__init__.py",
        "%2e%2e/__init__.py",
        "lib",
        "lib/",
        "//etc/passwd",
        "..%2f__init__.py",
    ):
        assert (await api.get(f"{PREFIX}{path}")).status == 404, path


async def test_the_page_itself_needs_no_token(tmp_path: Path) -> None:
    """It holds nothing; whatever it asks for does need one."""
    async with served(tmp_path, access=Access("0.0.0.0", tokens=[NamedToken("server", "s3cret-token")])) as api:
        for path in ("/", f"{PREFIX}main.js", f"{PREFIX}style/base.css"):
            assert (await api.get(path)).status == 200, path
        for path in ("/api/schedule", "/api/stream", "/page", "/pages/main.js"):
            assert (await api.get(path)).status == 401, path
