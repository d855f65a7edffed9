"""The examples in the documentation are run, in the order in which a reader meets them, against a daemon."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from edges.http.kit import Daemon, daemon

ROOT = Path(__file__).parents[3]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
BLOCK = re.compile(r"^```(?:sh|bash|console)\n(.*?)^```", re.M | re.S)
LISTENING = "localhost:8377"
CURL = shutil.which("curl")

pytestmark = pytest.mark.skipif(CURL is None, reason="curl is not installed")


def examples(page: Path) -> list[str]:
    """The blocks of a page that ask the daemon something."""
    return [block for block in BLOCK.findall(page.read_text(encoding="utf-8")) if "curl" in block]


WITH_EXAMPLES = [page for page in PAGES if examples(page)]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon as it is after `wakeful up` in a new home."""
    with daemon(tmp_path_factory.mktemp("examples") / "home") as one:
        yield one


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=lambda page: page.name)
def test_every_example_works_as_it_stands(running: Daemon, tmp_path: Path, page: Path) -> None:
    """Each command of each block succeeds; a refusal (4xx, 5xx) is a failure of the example."""
    (tmp_path / ".curlrc").write_text('fail\nsilent\nshow-error\nmax-time = 60\nwrite-out = "\\n"\n')
    for block in examples(page):
        address = running.address.removeprefix("http://")
        assert LISTENING in block, f"an example that asks somebody else cannot be run:\n{block}"
        ended = subprocess.run(
            ["bash", "-eu", "-c", block.replace(LISTENING, address)],
            env={"PATH": "/usr/bin:/bin", "CURL_HOME": str(tmp_path), "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert ended.returncode == 0, f"{block}\n{ended.stdout}\n{ended.stderr}"
        asked = len(re.findall(r"^\s*curl ", block, re.M))
        assert len(ended.stdout.splitlines()) >= asked, ended.stdout


def test_the_page_of_the_api_shows_every_kind_of_request() -> None:
    """The six operations of seed 001, and one example at least for every other route that ends."""
    text = "\n".join(examples(ROOT / "docs" / "rest.md"))
    shown = set(re.findall(r"-X (PUT|PATCH|POST|DELETE)", text))
    assert shown == {"PUT", "PATCH", "POST", "DELETE"}
    for route in (
        "pause",
        "resume",
        "runs",
        "stats",
        "next",
        "why",
        "upcoming",
        "nodes",
        "config",
        "healthz",
        "metrics",
    ):
        assert re.search(rf"curl.*/{route}\b", text), route
