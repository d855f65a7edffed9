"""`make dist`: build the wheel and the sdist, check them, install the wheel into an empty environment, and try it.

The requirements are resolved by pip from the wheel's own metadata, as they are for a user; no lock file is used.
"""

import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Final
from zipfile import ZipFile

from first_answer import Failed, first_answer
from markdown_it import MarkdownIt
from packaging.metadata import Metadata

ROOT: Final = Path(__file__).parents[1]
DIST: Final = ROOT / "dist"
IMAGE: Final = re.compile(r"<img\s[^>]*?src=\"([^\"]+)\"")
LIMIT: Final = 120.0
"""Seconds from `pip install` to the first answer that a new user may wait for."""


def main() -> None:
    began = time.monotonic()
    wheel, sdist = build(DIST)
    with tempfile.TemporaryDirectory(prefix="wakeful-dist-") as folder:
        check_metadata(wheel)
        check_sdist(sdist, wheel, Path(folder))
        report("built and checked", began, f"{wheel.name} {size(wheel)}, {sdist.name} {size(sdist)}")
        environment = Path(folder) / "environment"
        _run(sys.executable, "-m", "venv", str(environment))
        began = time.monotonic()
        _run(str(environment / "bin" / "pip"), "--disable-pip-version-check", "install", "--quiet", str(wheel))
        report("installed", began, "into an empty environment, from the wheel's metadata")
        answering = time.monotonic()
        first_answer([str(environment / "bin" / "wakeful")])
        report("first answer", answering, "init, up, add, run --wait, down in an empty home")
        report("together", began, "from pip install to the first answer and down")
        if time.monotonic() - began > LIMIT:
            print(f"slower than the {LIMIT:.0f} s that a new user should wait; is the machine busy?", file=sys.stderr)


def build(target: Path) -> tuple[Path, Path]:
    """The wheel and the sdist, by the build backend of this environment."""
    shutil.rmtree(target, ignore_errors=True)
    _run(sys.executable, "-m", "hatchling", "build", "-d", str(target))
    (wheel,), (sdist,) = target.glob("*.whl"), target.glob("*.tar.gz")
    return wheel, sdist


def check_metadata(wheel: Path) -> None:
    """What an index checks at an upload: the metadata is valid and its description can be shown."""
    with ZipFile(wheel) as opened:
        (name,) = (one for one in opened.namelist() if one.endswith(".dist-info/METADATA"))
        metadata = Metadata.from_email(opened.read(name))  # raises for every field that is not valid
    if metadata.description_content_type != "text/markdown" or not metadata.description:
        raise Failed("the wheel has no description in Markdown")
    relative = relative_targets(metadata.description)
    if relative:
        raise Failed(f"the description links to files that an index does not have: {', '.join(relative)}")


def relative_targets(text: str) -> list[str]:
    """Links and pictures of a Markdown text that are not absolute."""
    found = []
    for block in MarkdownIt("commonmark").enable("table").parse(text):
        for token in block.children or ():
            target = token.attrs.get("href") or token.attrs.get("src")
            named = IMAGE.findall(token.content) if token.type == "html_inline" else [str(target)] if target else []
            found += [one for one in named if not one.startswith(("https://", "http://", "#"))]
    return found


def check_sdist(sdist: Path, wheel: Path, folder: Path) -> None:
    """A wheel made from the sdist holds the same files."""
    with tarfile.open(sdist) as opened:
        opened.extractall(folder, filter="data")
    (unpacked,) = (one for one in folder.iterdir() if one.is_dir())
    _run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "again"), cwd=unpacked)
    (again,) = (folder / "again").glob("*.whl")
    differing = set(names_in(wheel)) ^ set(names_in(again))
    if differing:
        raise Failed(f"wheel and sdist disagree about {', '.join(sorted(differing))}")


def names_in(wheel: Path) -> list[str]:
    with ZipFile(wheel) as opened:
        return opened.namelist()


def size(file: Path) -> str:
    return f"({file.stat().st_size / 1e6:.1f} MB)"


def report(what: str, began: float, words: str) -> None:
    print(f"{what:<18} {time.monotonic() - began:6.1f} s  {words}", flush=True)


def _run(*command: str, cwd: Path = ROOT) -> None:
    ended = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise Failed(f"{' '.join(command)}: exit code {ended.returncode}\n{ended.stdout}{ended.stderr}")


if __name__ == "__main__":
    try:
        main()
    except Failed as failed:
        sys.exit(str(failed))
