"""The page of the API shows every kind of request; that each works is seen where all blocks are run."""

import re

from docs.blocks import ROOT, blocks

ROUTES = ("pause", "resume", "runs", "stats", "next", "why", "upcoming", "nodes", "config", "healthz", "metrics")


def test_the_page_of_the_api_shows_every_kind_of_request() -> None:
    """The six operations on schedules, and one example at least for every other route that ends."""
    text = "\n".join(block.text for block in blocks(ROOT / "docs" / "rest.md") if block.language == "sh")
    assert set(re.findall(r"-X (PUT|PATCH|POST|DELETE)", text)) == {"PUT", "PATCH", "POST", "DELETE"}
    for route in ROUTES:
        assert re.search(rf"curl.*/{route}\b", text), route
