"""The programs of docs/frameworks.md, with the real frameworks where they are installed, against a model server.

They may be installed in an environment of their own: FRAMEWORKS=/path/to/lib/python3.11/site-packages, also several
with a colon between them. (PYTHONPATH would hide the tests' own package `agents` behind that of the OpenAI Agents SDK.)
"""

import asyncio
import importlib.machinery
import os
import re
import sys
from pathlib import Path

import pytest

from agents.model_server import REPLY, model_server
from docs.blocks import ROOT
from patience import PATIENCE

PAGE = (ROOT / "docs" / "frameworks.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```text\n(.*?)^```$", PAGE, re.M | re.S)
BEGIN, END = BLOCKS[:2]
SECTIONS = dict(re.findall(r"^## (.+?)\n.*?^```text\n(.*?)^```$", PAGE, re.M | re.S))
NEEDS = {
    "Pydantic AI": ("pydantic_ai", "openai"),
    "OpenAI Agents SDK": ("agents.run",),
    "LangGraph": ("langgraph.graph", "langchain_openai"),
    "CrewAI": ("crewai",),
}
FOLDERS = [folder for folder in os.environ.get("FRAMEWORKS", "").split(os.pathsep) if folder]
QUIET = {
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "OTEL_SDK_DISABLED": "true",
    "LANGSMITH_TRACING": "false",
}
"""Nothing but the model server is called."""


def test_every_section_is_tried() -> None:
    assert SECTIONS.keys() == NEEDS.keys()
    assert len(BLOCKS) == len(SECTIONS) + 2


def is_installed(module: str) -> bool:
    """Also if tests have a package of the same name: `agents`."""
    folders = [*FOLDERS, *(entry for entry in sys.path if Path(entry).resolve() != ROOT / "tests")]
    package, _, inner = module.partition(".")
    spec = importlib.machinery.PathFinder.find_spec(package, folders)
    places = [] if spec is None else list(spec.submodule_search_locations or [])
    return bool(places) and (not inner or importlib.machinery.PathFinder.find_spec(inner, places) is not None)


@pytest.mark.parametrize("name", NEEDS)
async def test_its_usage_counts(name: str, tmp_path: Path) -> None:
    """The reply arrives, with the tokens that the model server counted and their price."""
    missing = [module for module in NEEDS[name] if not is_installed(module)]
    if missing:
        pytest.skip(f"{missing[0]} is not installed")
    program = tmp_path / "program.py"
    program.write_text("\n\n".join((BEGIN, SECTIONS[name], END)), encoding="utf-8")
    async with model_server() as server:
        address = dict.fromkeys(("OPENAI_BASE_URL", "OPENAI_API_BASE"), f"{server.url}/v1")
        env = {**os.environ, **QUIET, **address, "OPENAI_API_KEY": "sk-test-not-a-key", "HOME": str(tmp_path)}
        env["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), *FOLDERS])
        process = await asyncio.create_subprocess_exec(
            sys.executable, str(program), cwd=tmp_path, env=env, stdout=-1, stderr=-1
        )
        out, err = await asyncio.wait_for(process.communicate(), 4 * PATIENCE)
        assert process.returncode == 0, err.decode()[-4_000:]
        counted = server.counted()
    total = counted.fresh + counted.cached + counted.output
    told = re.search(rf"^succeeded {re.escape(REPLY)} (\d+) (\S+)$", out.decode(), re.M)
    assert told is not None, out.decode()
    assert int(told[1]) == total and counted.output > 0
    assert float(told[2]) > 0
