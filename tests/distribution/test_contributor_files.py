"""What contributors are told to run exists, and every supported Python is tried."""

import re
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))


def test_the_workflow_tries_every_supported_python() -> None:
    """Those of the classifiers, and the pages name the same ones."""
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    supported = re.findall(r":: (3\.\d+)$", "\n".join(PROJECT["classifiers"]), re.M)
    assert workflow["jobs"]["test"]["strategy"]["matrix"]["python"] == supported
    assert PROJECT["requires-python"] == f">={supported[0]}"
    stability = (ROOT / "docs" / "stability.md").read_text(encoding="utf-8")
    assert f"{supported[0]} to {supported[-1]}" in stability


def test_every_target_that_is_named_exists() -> None:
    """In the workflow, CONTRIBUTING.md and the README."""
    named: set[str] = set()
    for file in (".github/workflows/ci.yml", "CONTRIBUTING.md", "README.md", ".pre-commit-config.yaml"):
        named |= set(re.findall(r"(?:`|run: )make ([a-z-]+)", (ROOT / file).read_text(encoding="utf-8")))
    assert {"check", "test", "dist"} <= named <= TARGETS


def test_tests_that_contributing_names_exist() -> None:
    """By their path from the root."""
    named = re.findall(r"`(tests/[\w/.]+\.py)`", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    assert named and all((ROOT / path).exists() for path in named)


def test_versions_agree() -> None:
    """The changelog and the security policy are about the version that is built."""
    version = PROJECT["version"]
    assert version in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split("## ")[1].splitlines()[0]
    minor = version.rpartition(".")[0]
    assert f"| {minor} | yes |" in (ROOT / "SECURITY.md").read_text(encoding="utf-8")
