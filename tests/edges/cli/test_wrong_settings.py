"""Wrong `wakeful.toml` files, and every byte that `wakeful check` says about them.

`wrong_settings.txt` has the files, each with a title, and after `>>>` the exit code and what is printed.
"""

from pathlib import Path
from typing import Final, NamedTuple

import pytest

from edges.cli.kit import Cli

TITLE: Final = "## "
PRINTED: Final = ">>> exit "


class Wrong(NamedTuple):
    """A file, and what the command says."""

    title: str
    settings: str
    code: int
    printed: str


def recorded() -> list[Wrong]:
    blocks = Path(__file__).with_name("wrong_settings.txt").read_text(encoding="utf-8").split(TITLE)[1:]
    return [_wrong(block) for block in blocks]


def _wrong(block: str) -> Wrong:
    title, _, rest = block.partition("\n")
    settings, _, ended = rest.partition(PRINTED)
    code, _, printed = ended.partition("\n")
    return Wrong(title, settings, int(code), printed)


@pytest.mark.parametrize("wrong", recorded(), ids=lambda wrong: wrong.title)
def test_each_error_has_its_line_its_setting_and_its_cure(
    alone: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: Wrong
) -> None:
    """All errors of a file together, in the order of the file."""
    monkeypatch.chdir(tmp_path)
    file = Path("wakeful.toml")
    file.write_text(wrong.settings, encoding="utf-8")
    file.chmod(0o600)
    said = alone.ask("check", str(file))
    assert (said.code, said.err.replace(str(tmp_path), "FOLDER")) == (wrong.code, wrong.printed)


def test_there_are_at_least_fifty() -> None:
    """Nearly all of them are refused; a few load with a warning."""
    codes = [wrong.code for wrong in recorded()]
    assert codes.count(1) >= 50
