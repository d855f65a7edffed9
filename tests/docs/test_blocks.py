"""Every block of every page is run, in the order in which a reader meets them; what cannot be is counted here."""

import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

from docs.blocks import ALL, LANGUAGES, ROOT, WITH_BLOCKS, blocks
from docs.reader import Reader

NOT_RUN = Counter(
    {
        ("docs/bench.md", "takes minutes"): 1,
        ("docs/cli.md", "needs zsh and fish"): 1,
        ("docs/operating.md", "fetches a new version"): 1,
        ("docs/operating.md", "needs systemd"): 1,
        ("docs/proof.md", "takes minutes"): 1,
        ("docs/several-machines.md", "needs a PostgreSQL server"): 1,
    }
)
"""What the pages show and nobody can run here: page, reason, how many blocks."""
STARTS = re.compile(r"^(?:\S*wakeful (?:--home \S+ )?up|make up)\b", re.M)


@pytest.mark.parametrize("page", WITH_BLOCKS, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_reader_who_follows_the_page_succeeds(page: Path, tmp_path: Path) -> None:
    """Each command, program and setting works as it stands there."""
    followed = [block for block in blocks(page) if block.language != "text" and block.not_run is None]
    typed = "\n".join(block.text for block in followed if block.language == "sh")
    if "curl " in typed and shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    reader = Reader(tmp_path)
    try:
        if typed and not STARTS.search(typed):
            reader.start_daemon()
        for block in followed:
            reader.follow(block)
    finally:
        reader.leave()


def test_what_is_not_run_is_known() -> None:
    """A block that is left out says why, and is counted: none is added in silence, and none stays here for nothing."""
    left_out = ((str(block.page.relative_to(ROOT)), block.not_run) for block in ALL if block.not_run is not None)
    assert Counter(left_out) == NOT_RUN


def test_every_block_says_what_it_is() -> None:
    """And commands are not passed off as text."""
    for block in ALL:
        assert block.language in LANGUAGES, f"{block.place}: write one of {', '.join(sorted(LANGUAGES))}"
        if block.language == "text":
            assert not re.search(r"^\$? ?(wakeful|curl|make|\.venv/bin/\w+) ", block.text, re.M), block.place
