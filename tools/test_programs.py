"""Installs the programs that some tests run against, where Debian's packages can be installed; otherwise lists them.

A test whose program is missing is skipped, and says so. Only root can install, and only what is missing is installed.
"""

import os
import shutil
import subprocess
import sys

PACKAGES = {
    "chromium-headless-shell": "chromium-headless-shell",
    "nginx": "nginx-light",
    "pgbouncer": "pgbouncer",
    "redis-server": "redis-server",
    "zsh": "zsh",
    "fish": "fish",
    "crontab": "cron",
    "jq": "jq",
    "curl": "curl",
    "bwrap": "bubblewrap",
}
PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"
INSTALL = ("apt-get", "install", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300")
LIMIT = 600
"""Seconds for each command."""


def missing() -> dict[str, str]:
    """The programs that are not on the PATH, with their packages."""
    return {name: package for name, package in PACKAGES.items() if shutil.which(name, path=PATH) is None}


def install(packages: list[str]) -> None:
    """Install packages, after finishing an interrupted installation; errors are printed, not raised."""
    environ = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    prepare = [["dpkg", "--configure", "-a"], ["apt-get", "update"], [*INSTALL, "--fix-broken"]]
    for command in [*prepare, *([*INSTALL, package] for package in packages)]:
        try:
            done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=LIMIT, check=False)
        except subprocess.TimeoutExpired:
            print(f"{' '.join(command)} took longer than {LIMIT} s")
            return
        if done.returncode:
            print(f"{' '.join(command)}: {done.stderr.strip()[-300:]}")


def main() -> int:
    if missing() and os.geteuid() == 0 and shutil.which("apt-get"):
        print(f"installing {', '.join(missing().values())} for the tests")
        install(list(missing().values()))
    if still := missing():
        print(f"skipping tests that need {', '.join(still)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
