"""Writing one setting: everything else stays as it is, or nothing is changed."""

from pathlib import Path

import pytest

from wakeful.cli.errors import Ended
from wakeful.cli.settings_file import write_setting


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, '[limits]\nagent_interval_min = "10m"\n'),
        ("", '[limits]\nagent_interval_min = "10m"\n'),
        ("# mine\n[agents.a]\nx = 1", '# mine\n[agents.a]\nx = 1\n\n[limits]\nagent_interval_min = "10m"\n'),
        ("[limits]  # mine\nx = 1\n", '[limits]  # mine\nagent_interval_min = "10m"\nx = 1\n'),
        (
            '[other]\nagent_interval_min = "1h"\n[limits]\nagent_interval_min = "1h"  # mine\n',
            '[other]\nagent_interval_min = "1h"\n[limits]\nagent_interval_min = "10m"\n',
        ),
        ("# [limits]\n", '# [limits]\n\n[limits]\nagent_interval_min = "10m"\n'),
    ],
)
def test_one_line_is_changed(before: str | None, after: str, tmp_path: Path) -> None:
    """And the file keeps its permissions."""
    file = tmp_path / "wakeful.toml"
    if before is not None:
        file.write_text(before)
        file.chmod(0o640)
    write_setting(file, "limits", "agent_interval_min", "10m")
    assert file.read_text() == after
    assert file.stat().st_mode & 0o777 == (0o600 if before is None else 0o640)


@pytest.mark.parametrize("text", ["limits = {x = 1}\n", "limits = 5\n", "[limits\n", 'limits.x = """\n[limits]\n"""\n'])
def test_what_cannot_be_changed_by_one_line_is_left_alone(text: str, tmp_path: Path) -> None:
    """With what to write by hand."""
    file = tmp_path / "wakeful.toml"
    file.write_text(text)
    with pytest.raises(Ended) as refused:
        write_setting(file, "limits", "agent_interval_min", "10m")
    assert refused.value.hint is not None and 'agent_interval_min = "10m"' in refused.value.hint
    assert file.read_text() == text
