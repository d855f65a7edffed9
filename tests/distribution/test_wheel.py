"""The wheel holds everything that running needs, and a new user gets a first answer from it alone.

`make dist` does the same with the requirements that pip resolves from the wheel's metadata; here they come from the
environment of the tests, so that nothing is fetched.
"""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest
from markdown_it import MarkdownIt
from packaging.metadata import Metadata
from packaging.requirements import Requirement

from patience import PATIENCE

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PINNED = re.compile(r"^([\w.-]+)(?:\[[\w,-]+\])?==(\S+)", re.M)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from this checkout."""
    return build(ROOT, tmp_path_factory.mktemp("dist"))


def build(root: Path, target: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(target)]
    ended = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert ended.returncode == 0, ended.stderr
    (built,) = target.glob("*.whl")
    return built


def metadata_of(wheel: Path) -> Metadata:
    with ZipFile(wheel) as opened:
        (name,) = (one for one in opened.namelist() if one.endswith(".dist-info/METADATA"))
        return Metadata.from_email(opened.read(name))


def test_the_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    """The page's files, the migrations and py.typed as well as the modules; nothing beside the package."""
    with ZipFile(wheel) as opened:
        names = {one for one in opened.namelist() if ".dist-info/" not in one}
    source = ROOT / "src"
    files = {file for file in source.rglob("*") if file.is_file() and "__pycache__" not in file.parts}
    assert names == {file.relative_to(source).as_posix() for file in files if file.suffix != ".pyc"}
    assert {"wakeful/py.typed", "wakeful/server/page/static/index.html"} <= names
    for store in ("sqlite", "postgres"):
        assert any(one.startswith(f"wakeful/stores/{store}/migrations/") for one in names)


def test_the_metadata_is_what_an_index_accepts(wheel: Path) -> None:
    """Every field is valid, and the requirements are those of the project."""
    metadata = metadata_of(wheel)
    assert (metadata.name, str(metadata.version)) == ("wakeful", PROJECT["project"]["version"])
    plain = {str(one) for one in metadata.requires_dist or () if "extra" not in str(one.marker or "")}
    assert plain == {str(Requirement(one)) for one in PROJECT["project"]["dependencies"]}
    assert sorted(metadata.provides_extra or ()) == sorted(PROJECT["project"]["optional-dependencies"])


IMAGE = re.compile(r"<img\s[^>]*?src=\"([^\"]+)\"")


def targets_in(text: str) -> list[str]:
    """Where the links and pictures of a Markdown text lead."""
    parsed = MarkdownIt("commonmark").enable("table").parse(text)
    tokens = [token for block in parsed for token in [block, *(block.children or ())]]
    found = [token.attrs.get("href") or token.attrs.get("src") for token in tokens]
    images = [src for token in tokens if token.type.startswith("html") for src in IMAGE.findall(token.content)]
    return [*(str(target) for target in found if target), *images]


def test_without_a_base_address_no_link_of_the_readme_leads_nowhere(wheel: Path) -> None:
    """The project is not published: an index would have no file to link to."""
    assert PROJECT["tool"]["hatch"]["metadata"]["hooks"]["custom"]["base-url"] == ""
    text = metadata_of(wheel).description or ""
    assert all(target.startswith(("http://", "https://")) for target in targets_in(text))
    assert "![" not in text and "<img" not in text
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"^#+ .*$", text, re.M) == re.findall(r"^#+ .*$", readme, re.M)
    assert re.findall(r"^```.*?^```$", text, re.M | re.S) == re.findall(r"^```.*?^```$", readme, re.M | re.S)


def test_with_a_base_address_every_link_and_picture_is_absolute(tmp_path: Path) -> None:
    """One line of pyproject.toml sets it."""
    for name in ("README.md", "LICENSE", "tools", "src"):
        (tmp_path / name).symlink_to(ROOT / name)
    base = "https://example.com/wakeful/blob/main/"
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8").replace('base-url = ""', f'base-url = "{base}"')
    (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "hatchling", "metadata", "readme"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE, check=True)
    targets = targets_in(ended.stdout)
    assert f"{base}docs/README.md" in targets
    pictures = [one for one in targets if re.fullmatch(rf"{base}docs/pictures/[\w-]+\.png\?raw=true", one)]
    assert len(pictures) == len(
        re.findall(r"docs/pictures/[\w-]+\.png", (ROOT / "README.md").read_text(encoding="utf-8"))
    )
    ours = [one for one in targets_in((ROOT / "README.md").read_text(encoding="utf-8")) if "://" not in one]
    assert {one.removeprefix(base).removesuffix("?raw=true") for one in targets if one.startswith(base)} == set(ours)


@pytest.mark.torture
def test_a_new_user_gets_a_first_answer_from_the_wheel(wheel: Path, tmp_path: Path) -> None:
    """init, up, add, run --wait and down, in an empty home and outside of the checkout."""
    with ZipFile(wheel) as opened:
        opened.extractall(tmp_path)
    start = f"import sys, wakeful; assert wakeful.__file__.startswith({str(tmp_path)!r}); sys.argv[0] = 'wakeful'"
    program = [sys.executable, "-P", "-c", f"{start}; from wakeful.cli.main import main; main()"]
    command = [sys.executable, str(ROOT / "tools" / "first_answer.py"), *program]
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    ended = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=4 * PATIENCE, check=False)
    assert ended.returncode == 0, ended.stderr


def pins(name: str) -> dict[str, str]:
    return dict(PINNED.findall((ROOT / "requirements" / name).read_text(encoding="utf-8")))


def test_running_needs_a_part_of_what_developing_needs() -> None:
    """The same versions in both lock files, so that `make up` and `make test` share an environment."""
    run, dev = pins("run.txt"), pins("dev.txt")
    assert run.items() < dev.items()
    needed = [*PROJECT["project"]["dependencies"], *PROJECT["dependency-groups"]["build"]]
    needed += [one for extra in PROJECT["project"]["optional-dependencies"].values() for one in extra]
    assert {Requirement(one).name for one in needed} <= set(run)
    assert not {"pytest", "mypy", "ruff", "playwright", "hypothesis", "schemathesis"} & set(run)


@pytest.mark.parametrize("name", ["run.txt", "dev.txt"])
def test_lock_files_have_hashes_and_no_address(name: str) -> None:
    """Whoever installs uses an index of their own, and gets exactly these files."""
    text = (ROOT / "requirements" / name).read_text(encoding="utf-8")
    assert "://" not in text and "--index-url" not in text
    entries = re.split(r"^(?=[\w-]+.*==)", text, flags=re.M)[1:]
    assert all("--hash=sha256:" in entry for entry in entries)
