"""Secrets that a target repeats are taken out before anything is kept."""

import pytest

from features.kit import Bot, World, virtual
from wakeful import every
from wakeful.app.options import Host
from wakeful.core.run.results import Busy, Done, Failed, Result, masked

SECRET = "s3cr3t-key"


def hide(text: str) -> str:
    return text.replace(SECRET, "***")


@pytest.mark.parametrize(
    "ending",
    [
        Done(reply=f"the key is {SECRET}", output=f"{SECRET}!"),
        Failed(f"401 for {SECRET}", output=SECRET),
        Busy(f"busy with {SECRET}"),
        Done(reply="fine", refused=("Bash", f"curl -H {SECRET}")),
    ],
)
def test_an_ending_without_its_secrets(ending: Result) -> None:
    """In reply, output, error and refused tools; the rest is as it was."""
    clean = masked(ending, hide)
    assert SECRET not in repr(clean)
    assert "***" in repr(clean)
    assert type(clean) is type(ending)


def test_an_ending_that_says_nothing_is_left_as_it_is() -> None:
    """Not even copied: it is on the path of every run."""
    done = Done()
    assert masked(done, hide) is done


@virtual
async def test_what_a_target_repeats_is_not_in_the_store(world: World) -> None:
    """Neither in a result nor in an error, of a run that closed or of one that waits."""
    bot = Bot(world)
    bot.script = [RuntimeError(f"refused: {SECRET}"), Done(reply=f"it is {SECRET}", output=SECRET)]
    app = await world.open(bot, host=Host(redact=hide))
    await app.add("job", every("1h"), retry={"times": 1, "delay": "10m"})
    await world.sleep("65m")
    assert "***" in str(world.query("SELECT error FROM runs"))
    await world.sleep("20m")
    (run,) = await app.runs("job")
    assert run.reply == "it is ***"
    await app.stop()
    assert SECRET.encode() not in world.path.read_bytes()
