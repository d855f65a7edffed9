"""What the tests of channels share."""

from collections.abc import AsyncIterator

import pytest

from channels.receiver import Receiver, receiving


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    """A receiver on loopback."""
    async with receiving() as one:
        yield one
