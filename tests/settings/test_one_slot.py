"""A slot written over REST: refused in the words of JSON."""

from pathlib import Path
from typing import Any

import pytest

from wakeful.config.one_slot import read_slot
from wakeful.core.errors import Invalid


@pytest.mark.parametrize(
    ("written", "field", "says"),
    [
        ({"provider": "glm"}, "apiKey", 'is missing; write "apiKey": {"env": "NAME"}'),
        (
            {"provider": "glm", "apiKey": "kkkk", "colour": 1},
            "colour",
            "afterReset, timezone, poll, retryWindow, errorsMax",
        ),
        (
            {"provider": "http", "quotaUrl": "http://127.0.0.1/", "interval": "60m"},
            "wakeUrl",
            'is missing, and interval needs it to wake the slot; write "wakeUrl": "https://…", or remove interval',
        ),
        ({"provider": "glm", "apiKey": "kkkk", "poll": "api_keys"}, "poll", "'api_keys'"),
    ],
)
def test_it_is_refused_in_the_names_it_was_written_in(
    tmp_path: Path, written: dict[str, Any], field: str, says: str
) -> None:
    """Field and cure can be put into the same body."""
    with pytest.raises(Invalid) as refused:
        read_slot("main", written, home=tmp_path)
    (fault,) = refused.value.errors
    assert fault.field == field and says in fault.message
