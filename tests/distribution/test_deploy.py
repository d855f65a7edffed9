"""The files of deploy/ agree with the settings, ports, files and version of this repository, and with one another.

No container engine is needed: what the image, the init container and the health check would run is run here, as the
same user and with the same layout of files.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from docs.machine import free_port
from patience import PATIENCE
from wakeful.config import load

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
IMAGE = f"wakeful:{PROJECT['version']}"
DOCKERFILE = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
KUBERNETES: list[dict[str, Any]] = list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text(encoding="utf-8")))
UNIT = (DEPLOY / "wakeful.service").read_text(encoding="utf-8")
TOKEN = "a-token-of-this-test-only"
USER = 10_001


def kind(name: str) -> dict[str, Any]:
    return next(one for one in KUBERNETES if one["kind"] == name)


POD: dict[str, Any] = kind("StatefulSet")["spec"]["template"]["spec"]


def last(instruction: str) -> str:
    """The last instruction of that name in the Dockerfile, with its continuation lines."""
    joined = DOCKERFILE.replace("\\\n", " ")
    return re.findall(rf"^{instruction} +(.+)$", joined, re.M)[-1]


@pytest.mark.parametrize(
    "text", [(DEPLOY / "wakeful.toml").read_text(encoding="utf-8"), kind("ConfigMap")["data"]["wakeful.toml"]]
)
def test_the_settings_are_accepted(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the variables that compose and Kubernetes set."""
    monkeypatch.setenv("WAKEFUL_TOKEN", TOKEN)
    monkeypatch.setenv("WAKEFUL_STORE", "postgresql://wakeful:secret@postgres/wakeful")
    (tmp_path / "wakeful.toml").write_text(text, encoding="utf-8")
    settings = load(tmp_path).settings
    assert (settings.server.host, settings.server.port) == ("0.0.0.0", 8377)
    assert settings.server.token is not None and settings.server.token.reveal() == TOKEN
    assert settings.store.url.reveal().startswith("postgresql://")
    assert kind("Service")["metadata"]["name"] in settings.server.allowed_hosts


def test_the_port_is_the_same_everywhere(tmp_path: Path) -> None:
    """That of the settings: in the image, its health check, compose and Kubernetes."""
    port = load(tmp_path).settings.server.port
    assert last("EXPOSE") == str(port)
    assert f":{port}/healthz" in last("HEALTHCHECK")
    nodes = [one for name, one in COMPOSE["services"].items() if name != "postgres"]
    assert all(one["ports"][0].endswith(f":{port}") and one["ports"][0].startswith("127.0.0.1:") for one in nodes)
    assert {one["ports"][0]["port"] for one in (s["spec"] for s in KUBERNETES if s["kind"] == "Service")} == {port}
    assert POD["containers"][0]["ports"] == [{"name": "http", "containerPort": port}]


def test_image_version_and_python() -> None:
    """The image is named after the version, and its Python is one that the project supports."""
    images = {one["image"] for name, one in COMPOSE["services"].items() if name != "postgres"}
    images |= {one["image"] for one in (*POD["containers"], *POD["initContainers"])}
    assert images == {IMAGE}
    (python,) = set(re.findall(r"^FROM python:(3\.\d+)-slim", DOCKERFILE, re.M))
    assert f"Programming Language :: Python :: {python}" in PROJECT["classifiers"]
    page = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
    assert set(re.findall(r"wakeful:[\d.]+\d", page)) == {IMAGE}
    install = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    assert set(re.findall(r"wakeful-([\d.]+)-py3", page + install)) == {PROJECT["version"]}


def test_the_image_has_what_it_copies_and_runs_as_nobody_special() -> None:
    """Everything it copies is let through; the user is a number, the home one volume of its own."""
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text(encoding="utf-8").split()
    copied = re.findall(r"^COPY (?!--from)(\S+)", DOCKERFILE, re.M)
    assert ignored == ["*", *(f"!{one}" for one in copied)]
    assert (ROOT / "requirements" / "run.txt").exists()
    assert last("USER") == f"{USER}:{USER}"
    assert (last("VOLUME"), "WAKEFUL_HOME=/data" in last("ENV")) == ("/data", True)
    assert json.loads(last("ENTRYPOINT")) == ["tini", "--", "wakeful"]
    context = POD["securityContext"]
    assert (context["runAsUser"], context["fsGroup"], context["runAsNonRoot"]) == (USER, USER, True)


def test_nodes_have_homes_of_their_own_and_time_to_stop(tmp_path: Path) -> None:
    """No two nodes share a volume, and a stop outlasts `limits.shutdown_grace`."""
    nodes = {name: one for name, one in COMPOSE["services"].items() if name != "postgres"}
    homes = [next(volume for volume in one["volumes"] if volume.endswith(":/data")) for one in nodes.values()]
    assert len(set(homes)) == len(nodes) == 2
    grace = load(tmp_path).settings.limits.shutdown_grace // 1000
    assert all(int(one["stop_grace_period"].removesuffix("s")) > grace for one in nodes.values())
    assert POD["terminationGracePeriodSeconds"] > grace
    found = re.search(r"^TimeoutStopSec=(\d+)$", UNIT, re.M)
    assert found and int(found[1]) > grace
    assert kind("StatefulSet")["spec"]["serviceName"] in {one["metadata"]["name"] for one in KUBERNETES}


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_finds_nothing_wrong_with_the_system_unit(tmp_path: Path) -> None:
    """Neither an error nor a warning, but for the program, which is not installed here."""
    file = tmp_path / "wakeful.service"
    file.write_text(re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", UNIT, flags=re.M))
    command = ["systemd-analyze", "verify", str(file)]
    looked = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (looked.returncode, looked.stderr) == (0, "")


def test_the_system_unit_starts_what_the_page_installs() -> None:
    """Program, home and account are those of docs/deploy.md."""
    page = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
    found = re.search(r"^ExecStart=(\S+) up$", UNIT, re.M)
    assert found and f"{Path(found[1]).parent}/pip install" in page
    assert "Environment=WAKEFUL_HOME=/var/lib/wakeful" in UNIT and "--home-dir /var/lib/wakeful" in page
    assert "StateDirectory=wakeful" in UNIT and "User=wakeful" in UNIT


@pytest.fixture
def volume() -> Iterator[Path]:
    """A volume as Kubernetes gives it: it belongs to root, and the group of the pod may write."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="wakeful-volume-") as folder:
        path = Path(folder)
        path.chmod(0o755)
        for name in ("data", "settings", "package"):
            (path / name).mkdir(mode=0o755)
        os.chown(path / "data", 0, USER)
        (path / "data").chmod(0o2775)
        (path / "settings" / "wakeful.toml").write_text(kind("ConfigMap")["data"]["wakeful.toml"], encoding="utf-8")
        yield path


def interpreter() -> str | None:
    """A Python like this one that every user of the machine may run."""
    code = f"import sys; assert sys.version_info[:2] == {sys.version_info[:2]!r}"
    for candidate in (sys.executable, "/usr/bin/python3"):
        with suppress(OSError, subprocess.CalledProcessError):
            subprocess.run([candidate, "-c", code], user=USER, capture_output=True, check=True, cwd="/")
            return candidate
    return None


@pytest.mark.torture
@pytest.mark.skipif(os.getuid() != 0, reason="only root can become the user of the image")
def test_the_pod_runs_as_its_user_in_its_volume(volume: Path) -> None:
    """Its init container makes the home, the daemon starts there, the health check passes, SIGTERM ends it well."""
    python = interpreter()
    if python is None:
        pytest.skip("no Python here can be run by another user")
    packages = [path for path in sys.path if path.endswith("site-packages")]
    shutil.copytree(ROOT / "src", volume / "package", dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    container, (init,) = POD["containers"][0], POD["initContainers"]
    prepared = [
        word.replace("/data", f"{volume}/data").replace("/settings", f"{volume}/settings") for word in init["command"]
    ]
    port = free_port()
    environ = {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": os.pathsep.join([str(volume / "package"), *packages]),
        "WAKEFUL_HOME": f"{volume}{container['env'][0]['value']}",
        "WAKEFUL_TOKEN": TOKEN,
        "WAKEFUL_STORE": "sqlite:///wakeful.db",
    }
    user: dict[str, Any] = {"user": USER, "group": USER, "extra_groups": [], "env": environ, "cwd": volume}
    for _ in range(2):  # a pod that starts again finds its home
        subprocess.run(prepared, check=True, timeout=PATIENCE, **user)
    arguments = [word if word != "0.0.0.0" else "127.0.0.1" for word in container["args"]]
    said = (volume / "said").open("w+")
    daemon = subprocess.Popen(
        [python, "-m", "wakeful.cli.main", *arguments, "--port", str(port)], stdout=said, stderr=said, **user
    )
    try:
        check = json.loads(last("HEALTHCHECK").partition("CMD ")[2].replace("8377", str(port)))
        give_up_at = time.monotonic() + PATIENCE
        while subprocess.run([python, *check[1:]], capture_output=True, check=False, **user).returncode:
            assert daemon.poll() is None and time.monotonic() < give_up_at, (volume / "said").read_text()
        assert status_of(port, "/readyz") == 200
        assert (status_of(port, "/api/schedule"), status_of(port, "/api/schedule", TOKEN)) == (401, 200)
        home = volume / "data" / "home"
        assert (home.stat().st_uid, home.stat().st_mode & 0o077) == (USER, 0)
        daemon.send_signal(signal.SIGTERM)
        assert daemon.wait(PATIENCE) == 0
    finally:
        if daemon.poll() is None:
            daemon.kill()
            daemon.wait()
        said.close()


def status_of(port: int, path: str, token: str | None = None) -> int:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    try:
        with urllib.request.urlopen(
            urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers), timeout=PATIENCE
        ) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
