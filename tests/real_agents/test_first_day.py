"""From an empty home to an answer, without an editor: init, up, agents test, add, run --wait."""

import shutil
import tomllib
from pathlib import Path

import pytest

from agents.model_server import REPLY
from real_agents.house import House, installed, serving, until

pytestmark = [pytest.mark.agents, pytest.mark.timeout(1800)]


def test_from_init_to_an_answer(tmp_path: Path) -> None:
    programs = [installed("claude"), installed("codex")]
    with serving() as server:
        house = House(tmp_path, server)
        for program in programs:
            house.move_in(program)
        only = tmp_path / "bin"  # a PATH on which these two are installed, and nothing else of the ten
        only.mkdir()
        for program in programs:
            assert program.path is not None
            (only / program.name).symlink_to(program.path)
        (only / "node").symlink_to(shutil.which("node") or "node")
        house.env["PATH"] = f"{only}:/usr/local/bin:/usr/bin:/bin"

        said = house.wakeful("init")
        assert said.code == 0, said.err
        written = tomllib.loads((house.home / "wakeful.toml").read_text())["agents"]
        assert {name: one["adapter"] for name, one in written.items()} == {"default": "claude", "codex": "codex"}

        with house.up():
            said = house.wakeful("agents", "test", "default")
            assert said.code == 0, said.out + said.err
            rungs = [line.split()[0] for line in said.out.splitlines() if line.startswith("  ")]
            assert (rungs[0], rungs[-1]) == ("claimed", "finished")
            assert REPLY in said.out
            until(lambda: all(one["version"] for one in house.wakeful("agents", "-o", "json").json["agents"]))

            assert house.wakeful("add", "hello", "--manual", "--prompt", "Good morning").code == 0
            said = house.wakeful("run", "hello", "--wait")
            assert (said.code, REPLY in said.out) == (0, True), said.out + said.err
