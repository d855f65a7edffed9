"""Packages with plugins, installed into a folder, and a real daemon that finds them there."""

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from access import write_token
from patience import PATIENCE

T = TypeVar("T")
ROOT: Final = Path(__file__).parents[2]


def install(package: Path, target: Path) -> None:
    """With pip, as a user would; its dependency is what is tested."""
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "install", *options, "--target", str(target), str(package)]
    subprocess.run(command, check=True, timeout=4 * PATIENCE)


def put_package(target: Path, name: str, code: str, points: Mapping[str, str]) -> None:
    """An installed package of one module; its entry points are named `group:kind`."""
    module = name.replace("-", "_")
    (target / f"{module}.py").write_text(code, encoding="utf-8")
    info = target / f"{module}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    groups: dict[str, list[str]] = {}
    for point, place in points.items():
        group, _, kind = point.partition(":")
        groups.setdefault(group, []).append(f"{kind} = {module}{place}")
    text = "\n".join(f"[{group}]\n" + "\n".join(lines) + "\n" for group, lines in groups.items())
    (info / "entry_points.txt").write_text(text)


class Running:
    """A daemon, asked over REST."""

    def __init__(self, address: str, home: Path, environ: Mapping[str, str]) -> None:
        self.address, self.home, self.environ = address, home, environ

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.address}{path}", data, method=method)
        request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=2 * PATIENCE) as response:
                return json.loads(response.read() or "null")
        except urllib.error.HTTPError as refused:
            return json.loads(refused.read())

    def run(self, slug: str, **definition: Any) -> dict[str, Any]:
        """The run of a schedule, once it has ended."""
        written = self.ask("PUT", f"/api/schedule/{slug}", {"schedule": {"type": "manual"}, **definition})
        assert "errors" not in written, written
        return dict(self.ask("POST", f"/api/schedule/{slug}/run?wait=true"))

    def troubles(self) -> list[str]:
        """What health says about plugins."""
        return [one["sentence"] for one in self.ask("GET", "/healthz")["findings"] if one["name"] == "plugins"]

    def cli(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        program = "from wakeful.cli.main import main; main()"
        command = [sys.executable, "-c", program, "--home", str(self.home), *arguments]
        return subprocess.run(
            command, env=self.environ, capture_output=True, text=True, timeout=2 * PATIENCE, check=False
        )


def until(look: Callable[[], T]) -> T:
    """What is found, once it is."""
    end = time.monotonic() + PATIENCE
    while True:
        found = look()
        if found or time.monotonic() > end:
            return found
        time.sleep(0.05)


def environ_with(packages: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(packages)])}


@contextmanager
def daemon_with(packages: Path, home: Path, settings: str) -> Iterator[Running]:
    write_token(home)
    (home / "wakeful.toml").write_text(settings, encoding="utf-8")
    environ = environ_with(packages)
    command = [sys.executable, "-m", "wakeful.server.daemon", str(home), "--port", "0"]
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert "listening on " in line, line
            yield Running(line.strip().rpartition(" ")[2], home, environ)
        finally:
            process.terminate()
            process.wait(PATIENCE)
