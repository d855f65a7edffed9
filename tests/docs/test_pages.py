"""Links lead somewhere, tests and modules that a page names exist, and command lines within sentences are right."""

import ast
import re
import shlex
from pathlib import Path

import click
import pytest

from docs.blocks import PAGES, ROOT, prose
from wakeful.cli.main import root

LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)")
PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)")
TYPED = re.compile(r"`((?:\.venv/bin/)?wakeful [a-z][^`]*)`")


def anchors(page: Path) -> set[str]:
    """The headings of a page, as links name them."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", title.replace("`", "").lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_pictures_lead_somewhere(page: Path) -> None:
    """Within the repository: the file is there, and the heading in it. A picture says what is on it."""
    text = prose(page)
    for target in [*LINK.findall(text), *(one for _, one in PICTURE.findall(text))]:
        if target.startswith(("http://", "https://")):
            continue
        path, _, anchor = target.partition("#")
        found = page if not path else (page.parent / path)
        assert found.exists(), f"{page.name} links to {target}, which is not there"
        assert not anchor or anchor in anchors(found), f"{page.name} links to {target}; no such heading"
    assert all(words for words, _ in PICTURE.findall(text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_within_sentences_exist(page: Path) -> None:
    """Every `wakeful …` in the prose names a command, and options that it has."""
    for typed in TYPED.findall(prose(page).replace("\\|", "|")):
        words = shlex.split(typed.split(" | ")[0].partition("#")[0])[1:]
        command: click.Command | None = root
        while isinstance(command, click.Group) and words and not words[0].startswith("-"):
            found = command.get_command(click.Context(command), words[0])
            if found is None:
                assert command is not root, f"{page.name}: there is no command {typed!r}"
                break
            command, words = found, words[1:]
        assert command is not None
        known = {option for one in command.params for option in (*one.opts, *one.secondary_opts)} | {"-h", "--help"}
        used = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
        assert used <= known, f"{page.name}: {typed!r} has no {used - known}"


def guards() -> list[str]:
    """Each row and each point of the page on security that says what is guarded, or is not."""
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    against, secrets = page.split("## Against whom")[1].split("## What to do")[0].split("## Secrets")
    rows = [
        line for line in against.splitlines() if line.startswith("| ") and not line.startswith(("| who ", "| way "))
    ]
    return [*rows, *re.findall(r"^- .*(?:\n  .*)*", secrets, re.M)]


@pytest.mark.parametrize("guard", guards(), ids=lambda guard: guard[:60])
def test_each_guard_names_a_test_that_exists_or_says_that_it_is_not_tested(guard: str) -> None:
    """By file and function, from the root."""
    named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", guard)
    assert named or "not tested" in guard
    for path, function in named:
        assert f"def {function}(" in (ROOT / path).read_text(encoding="utf-8"), f"{path} has no {function}"
    assert len(re.findall(r"\btests/", guard)) == len(named), "a test is named by its file and its function"


def test_the_page_on_security_has_guards() -> None:
    """Nothing above passes because nothing was found."""
    assert len(guards()) >= 25


def test_pictures_are_small_and_used_and_taken_by_the_script() -> None:
    """Each is one that the script takes, and loads at once."""
    script = (ROOT / "docs" / "pictures" / "take.py").read_text(encoding="utf-8")
    shown = script.partition("SHOWN: Final = (")[2].partition(")")[0]
    taken = set(re.findall(r'"([\w-]+)"', shown))
    pictures = {file.stem: file.stat().st_size for file in (ROOT / "docs" / "pictures").glob("*.png")}
    assert set(pictures) == taken
    pages = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert [name for name in pictures if f"pictures/{name}.png" not in pages] == []
    assert max(pictures.values()) <= 300_000


def test_the_index_names_every_page() -> None:
    """docs/README.md leads to all pages, and the README to it."""
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    linked = {target.partition("#")[0] for target in LINK.findall(index)}
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert pages <= linked, pages - linked
    assert "docs/README.md" in LINK.findall((ROOT / "README.md").read_text(encoding="utf-8"))


SOURCE = ROOT / "src" / "wakeful"
LAWS = (ROOT / "tests" / "worlds", SOURCE / "drill")
FOLDERS = {entry.name for entry in SOURCE.iterdir() if entry.is_dir()}
DOTTED = re.compile(r"`([a-z_]+(?:\.\w+)+)(?:\(\))?`")
PATH = re.compile(r"`([\w.]+(?:/[\w.-]+)+)(?:::(\w+))?`")


def defined(file: Path) -> set[str]:
    """Every function, class and variable that a module defines, at any depth."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names


def missing(dotted: str, root: Path) -> str | None:
    """Which part of `folder.module.Class.method` does not exist below the root; None if all of it does."""
    place, names = root, dotted.split(".")
    while names and (place / names[0]).is_dir():
        place /= names.pop(0)
    if not names:
        return None
    file = place / f"{names.pop(0)}.py"
    if not file.is_file():
        return str(file.relative_to(root))
    return next((name for name in names if name not in defined(file)), None)


@pytest.mark.parametrize("name", ["ARCHITECTURE.md", "docs/internals.md", "docs/laws.md"])
def test_modules_functions_and_paths_exist(name: str) -> None:
    """Names are relative to src/wakeful, paths to that or to the root, laws to tests/worlds or the drill."""
    text = (ROOT / name).read_text(encoding="utf-8")
    modules = [dotted for dotted in DOTTED.findall(text) if dotted.split(".")[0] in FOLDERS]
    laws = [dotted for dotted in DOTTED.findall(text) if dotted.split(".")[0].endswith("laws")]
    wrong = [dotted for dotted in modules if missing(dotted, SOURCE) is not None]
    wrong += [law for law in laws if all(missing(law, folder) is not None for folder in LAWS)]
    for path, function in PATH.findall(text):
        files = [root / path for root in (ROOT, SOURCE) if (root / path).exists()]
        if not files or (function and function not in defined(files[0])):
            wrong.append(f"{path}::{function}" if function else path)
    assert modules or laws
    assert not wrong, f"{name} names what does not exist: {wrong}"


def test_every_law_of_the_worlds_is_on_the_page_of_laws() -> None:
    """A law is a function that yields what breaks it, and says its number first."""
    page = (ROOT / "docs" / "laws.md").read_text(encoding="utf-8")
    laws = [
        f"{file.stem}.{function.name}"
        for folder in LAWS
        for file in folder.glob("*laws.py")
        for function in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(function, ast.FunctionDef) and re.match(r"[LS]\d", ast.get_docstring(function) or "")
    ]
    assert len(laws) >= 50
    assert [law for law in laws if f"`{law}`" not in page] == []
    assert re.findall(r"^## L(\d+)", page, re.M) == [str(number) for number in range(1, 11)]
