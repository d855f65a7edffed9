"""The pipes of children belong to one owner: what is closed twice may be somebody else's file by then."""

import asyncio
import os
import subprocess
from collections.abc import Callable
from io import FileIO

import pytest
import uvloop

from patience import PATIENCE
from wakeful.integrations.actions.child import taken_over


def is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


@pytest.mark.parametrize(("new_loop", "file_owns"), [(asyncio.new_event_loop, True), (uvloop.new_event_loop, False)])
def test_a_pipe_is_closed_once(new_loop: Callable[[], asyncio.AbstractEventLoop], file_owns: bool) -> None:
    """By the file, or by uvloop itself, which closes the file right after it."""

    async def read_and_close() -> None:
        child = subprocess.Popen(["true"], bufsize=0, stdout=subprocess.PIPE)
        assert child.stdout is not None
        loop = asyncio.get_running_loop()
        pipe = taken_over(child.stdout, "rb", loop)
        assert isinstance(pipe, FileIO) and pipe.closefd == file_owns
        descriptor = pipe.fileno()
        transport, _ = await loop.connect_read_pipe(asyncio.Protocol, pipe)
        child.wait(PATIENCE)
        transport.close()
        async with asyncio.timeout(PATIENCE):
            while is_open(descriptor):
                await asyncio.sleep(0.001)
        assert pipe.closed

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(read_and_close())
