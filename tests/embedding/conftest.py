"""Each test begins with nothing called."""

from collections.abc import Iterator

import pytest

from embedding import jobs


@pytest.fixture(autouse=True)
def nothing_called() -> Iterator[None]:
    jobs.CALLS.clear()
    jobs.TROUBLE.clear()
    yield
