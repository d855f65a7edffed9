"""What a command imports. Most of its time goes into imports, so heavy modules must not creep in."""

import subprocess
import sys

import pytest

from edges.cli.kit import WITHIN, Cli

HEAVY = (
    "aiohttp", "asyncio", "concurrent.futures", "cronsim", "fastapi", "prometheus_client", "psycopg", "pydantic",
    "rich", "sqlite3", "starlette", "uvicorn",
    "wakeful.app", "wakeful.config", "wakeful.core.schedule.definition", "wakeful.engine", "wakeful.features",
    "wakeful.integrations", "wakeful.server.daemon.process", "wakeful.server.http", "wakeful.stores",
)  # fmt: skip
LOADED = f"import sys; print('LOADED', *[name for name in {HEAVY!r} if name in sys.modules])"
COMMAND = f"""
from wakeful.cli.main import main
code = None
try:
    main()
except SystemExit as end:
    code = end.code
print('CODE', code or 0)
{LOADED}
"""


def printed(code: str, *words: str, **environment: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        env=environment,
        capture_output=True,
        text=True,
        timeout=WITHIN,
        check=True,
    )
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def busy(cli: Cli) -> Cli:
    """A daemon with a schedule that has run."""
    assert cli.ask("add", "x", "--every", "2h", "--command", "true").code == 0
    assert cli.ask("run", "x", "--wait").code == 0
    return cli


@pytest.mark.parametrize(
    "words", ["ls -o json", "show x", "runs x", "next", "why x", "stats x", "log", "pause x", "resume x", "alerts"]
)
def test_a_command_against_a_daemon_imports_nothing_heavy(busy: Cli, words: str) -> None:
    """Neither the event loop nor the server, the stores, the settings or the rules of definitions."""
    assert printed(COMMAND, *words.split(), **busy.environment)[-2:] == ["CODE 0", "LOADED"]


def test_the_library_imports_nothing_heavy() -> None:
    """`import wakeful` loads a name when it is first used."""
    assert printed(f"import wakeful; {LOADED}") == ["LOADED"]


def test_an_embedded_scheduler_loads_nothing_of_the_daemon() -> None:
    """Neither the settings reader and its checks, nor the server, nor a client for HTTP or PostgreSQL."""
    loaded = printed(f"from wakeful import Wakeful, cron, every; {LOADED}")[0].split()
    daemon = {name for name in HEAVY if not name.startswith("wakeful.")} | {"wakeful.config", "wakeful.server"}
    needed = {"asyncio", "concurrent.futures", "cronsim", "sqlite3"}
    assert not (daemon - needed) & set(loaded)
