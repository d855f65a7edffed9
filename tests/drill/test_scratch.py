"""Where a drill takes place, and what is removed."""

import os
from pathlib import Path

import pytest

from postgres.server import Server, server
from wakeful.drill.proxy import Proxy
from wakeful.drill.scratch import CannotDrill, Scratch, make_folder, place_for, reserve_schemas, with_parameters

__all__ = ["server"]


def test_the_place_is_next_to_the_home(tmp_path: Path) -> None:
    """On the same disk; for a home that does not exist yet, where it would be created."""
    (tmp_path / "home").mkdir()
    assert place_for(tmp_path / "home") == tmp_path
    assert place_for(tmp_path / "home/new/er") == tmp_path / "home"


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="needs a second file system")
def test_a_home_that_is_a_disk_of_its_own(tmp_path: Path) -> None:
    """What is next to it is on another disk, so the place is in it."""
    assert place_for(Path("/dev/shm")) == Path("/dev/shm")


def test_what_a_killed_drill_left_is_removed_by_the_next(tmp_path: Path) -> None:
    """But not the folder of one that is running."""
    left, lock = make_folder(tmp_path)
    os.close(lock)
    running, held = make_folder(tmp_path)
    assert not left.exists()
    another, also = make_folder(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted([running, another])
    assert running.stat().st_mode & 0o077 == 0
    for file in (held, also):
        os.close(file)


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    """The message names it and a cure."""
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(CannotDrill, match=r"cannot be used \(Not a directory\)") as refused:
        make_folder(file)
    assert "--home" in refused.value.cure


def test_schemas_are_reserved_and_dropped(server: Server, tmp_path: Path) -> None:
    """Those of a killed drill by the next one, those of a running drill only by itself."""
    first = reserve_schemas(server.url, ["main"])
    with server.connect() as connection:
        connection.execute(f"CREATE SCHEMA {first.schemas[0]}".encode())
        second = reserve_schemas(server.url, ["main"])
        assert _drills(connection) == [first.schemas[0]], "it is running"
        first.connection.close()
        reserve_schemas(server.url, ["main"]).connection.close()
        assert _drills(connection) == []
        connection.execute(f"CREATE SCHEMA {second.schemas[0]}".encode())
        Scratch(tmp_path / "folder", second.server, second.schemas).remove()
        assert _drills(connection) == []
    second.connection.close()


def _drills(connection: object) -> list[str]:
    asked = "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'wakeful_drill%' ORDER BY 1"
    return [name for (name,) in connection.execute(asked)]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("postgresql://localhost:1/nothing?connect_timeout=2", "PostgreSQL cannot be used"),
        ("postgresql://localhost/x?schema=BAD", "lower-case letters"),
    ],
)
def test_a_server_that_cannot_be_used(url: str, words: str) -> None:
    """The cure names the option."""
    with pytest.raises(CannotDrill, match=words) as refused:
        reserve_schemas(url, ["main"])
    assert "--store" in refused.value.cure


async def test_the_address_through_a_proxy() -> None:
    """The name stays, for its certificate; a socket's folder becomes localhost."""
    proxy = await Proxy.start("db.example", 5432)
    try:
        through = proxy.url("postgresql://me:pw@db.example:5432/app?sslmode=verify-full")
        assert through.startswith("postgresql://me:pw@db.example:5432/app?sslmode=verify-full&hostaddr=127.0.0.1&port=")
    finally:
        await proxy.stop()
    local = await Proxy.start("/run/postgresql", 5432)
    try:
        assert "host=localhost" in local.url("postgresql:///app?host=/run/postgresql")
    finally:
        await local.stop()


def test_parameters_replace_those_of_an_address() -> None:
    """Also where it has no host."""
    assert with_parameters("postgresql:///app?schema=mine&a=1", schema="other") == "postgresql:///app?a=1&schema=other"
