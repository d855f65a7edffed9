"""A machine of the reader's own: an empty home, a clone at ~/wakeful whose environment is made already, and the
programs that a test cannot have as they are.

Those are `wakeful`, which finds its way to a port of its own (`wakeful_of_a_reader`), and `systemctl` and `loginctl`,
which keep a service without systemd (`systemctl_of_a_reader`).
"""

import os
import random
import shlex
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from docs.blocks import ROOT

HERE = Path(__file__).parent
IN_A_CLONE = (
    ".gitignore",
    "Makefile",
    "README.md",
    "LICENSE",
    "pyproject.toml",
    "requirements",
    "src",
    "tools",
    "docs",
    "bench",
)
NEWS = "\n# This came with the newer version.\n"
"""What the reader's next `git pull` brings."""
FETCHING = ("PIP_", "SSL_CERT_", "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
"""How this machine reaches what it installs from; the reader's does the same."""
SOMEBODY = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.com", "-c", "init.defaultBranch=main")


class Machine:
    """One folder that is a machine to whoever reads on it."""

    def __init__(self, folder: Path, *, has_git: bool) -> None:
        self.folder, self.user = folder, folder / "user"
        self.clone = self.user / "wakeful"
        self.ports = {"8377": free_port(), "8378": free_port()}
        """The port of a page, and the one that is used for it."""
        self.pids = folder / "pids"
        self.pids.touch()
        for name in ("bin", "run"):
            (folder / name).mkdir()
        self.user.mkdir()
        self.environ = {
            "PATH": f"{self.clone / '.venv/bin'}:{folder / 'bin'}:{os.environ['PATH']}",
            "HOME": str(self.user),
            "CURL_HOME": str(folder),
            "TZ": "Europe/Berlin",
            "LANG": "C.UTF-8",
            "XDG_RUNTIME_DIR": str(folder / "run"),
            "GIT_CONFIG_NOSYSTEM": "1",
            **{name: value for name, value in os.environ.items() if name == "TMPDIR" or name.startswith(FETCHING)},
        }
        (folder / ".curlrc").write_text('fail\nsilent\nshow-error\nmax-time = 60\nwrite-out = "\\n"\n')
        if has_git:
            self._clone_really()
        else:
            self._clone_by_links()
        self._install()

    def _clone_by_links(self) -> None:
        """Enough for whoever does not fetch anything."""
        self.clone.mkdir()
        for name in IN_A_CLONE:
            (self.clone / name).symlink_to(ROOT / name)

    def _clone_really(self) -> None:
        """From a repository in which a newer version is published as soon as the clone is made."""
        origin, upstream = self.folder / "origin.git", self.folder / "upstream"
        self._git("init", "--bare", str(origin))
        here = (f"--git-dir={origin}", f"--work-tree={ROOT}")
        self._git(*here, "add", "--", *IN_A_CLONE, where=ROOT)
        self._git(*here, "commit", "-m", "The version the reader has", where=ROOT)
        self._git("clone", str(origin), str(self.clone))
        # The same sources once more, with what was compiled of them: a clone would compile all of it anew.
        shutil.copytree(ROOT / "src", self.clone / "src", dirs_exist_ok=True)
        self._git("clone", str(origin), str(upstream))
        source = upstream / "src" / "wakeful" / "__init__.py"
        self.publish(source, source.read_text(encoding="utf-8") + NEWS)

    def publish(self, file: Path, text: str) -> None:
        """A newer version, for the next `git pull`."""
        upstream = self.folder / "upstream"
        file.write_text(text, encoding="utf-8")
        self._git("commit", "-m", "A newer version", "--", str(file), where=upstream)
        self._git("push", where=upstream)

    def _git(self, *words: str, where: Path | None = None) -> None:
        command = ["git", *SOMEBODY, *words]
        where = where or self.folder
        ended = subprocess.run(command, cwd=where, env=self.environ, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, f"{shlex.join(command)}\n{ended.stderr}"

    def _install(self) -> None:
        """The environment of this test process, with the clone's sources, as `make venv` would have installed them."""
        programs = self.clone / ".venv" / "bin"
        programs.mkdir(parents=True)
        _write_program(programs / "python", self._exports(PYTHONPATH=self.clone / "src"), sys.executable)
        told = {"DOCS_PORT": self.ports["8377"], "DOCS_PIDS": self.pids, "DOCS_SAID": self.folder / "said"}
        exports = self._exports(PYTHONPATH=self.clone / "src", **told)
        _write_program(programs / "wakeful", exports, sys.executable, HERE / "wakeful_of_a_reader.py")
        for name in ("systemctl", "loginctl"):
            exports = self._exports(PYTHONPATH=ROOT / "src", DOCS_PIDS=self.pids)
            _write_program(self.folder / "bin" / name, exports, sys.executable, HERE / "systemctl_of_a_reader.py", name)
        if shutil.which("kubectl") is None:  # an import checks that it is there
            _write_program(self.folder / "bin" / "kubectl", "", "/bin/true")
        for stamp in (".runs", ".installed"):  # so that make takes the environment for made, in this order
            (self.clone / ".venv" / stamp).touch()

    def _exports(self, *, PYTHONPATH: Path, **others: object) -> str:  # noqa: N803 - the variable's name
        """What a program finds in its environment, whatever the reader's own is."""
        path = f'export PYTHONPATH={shlex.quote(str(PYTHONPATH))}"${{PYTHONPATH:+:$PYTHONPATH}}"\n'
        return path + "".join(f"export {name}={shlex.quote(str(value))}\n" for name, value in others.items())


def _write_program(file: Path, exports: str, *words: object) -> None:
    file.write_text(f'#!/bin/sh\n{exports}exec {shlex.join(map(str, words))} "$@"\n')
    file.chmod(0o755)


def free_port() -> int:
    """One below those that the system gives to whoever connects, so that nobody takes it before it is used."""
    for port in random.sample(range(20_000, 32_000), 100):
        with socket.socket() as door:
            try:
                door.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    pytest.fail("no port is free")
