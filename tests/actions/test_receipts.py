"""Receipts: genuine ones count once, forged ones never, late ones are not lost."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wakeful.core.errors import Invalid
from wakeful.core.run.results import Done, Failed
from wakeful.integrations.actions.receipts import KEPT_MAX, Receipt, Receipts
from wakeful.integrations.actions.reply import REPLY_MAX

SECRET = b"a secret of some length"


@pytest.fixture
def receipts() -> Receipts:
    return Receipts(SECRET, "https://here:8377/")


async def test_a_valid_receipt_resolves_who_waits(receipts: Receipts) -> None:
    """The bell rings, and the receipt is in the inbox."""
    with receipts.expecting(7) as inbox:
        assert await receipts.post(7, receipts.token(7), "finished", "done", {"total_tokens": 3}) == "taken"
        assert inbox.bell.is_set()
        assert inbox.receipt == Receipt("finished", "done", {"total": 3})
        assert inbox.receipt.result("s") == Done(reply="done", usage={"total": 3}, session_id="s")


async def test_the_url_carries_the_token(receipts: Receipts) -> None:
    """All an agent needs is to post to it; without an address of ours there is none."""
    assert receipts.url(7) == f"https://here:8377/api/runs/7/receipt?token={receipts.token(7)}"
    assert Receipts(SECRET).url(7) is None


async def test_a_forged_receipt_changes_nothing(receipts: Receipts) -> None:
    """Neither another run's token, nor another secret's, nor none, nor one that is no text for a token."""
    other = Receipts(b"another secret of some length")
    token = receipts.token(7)
    with receipts.expecting(7) as inbox:
        for forged in (receipts.token(8), other.token(7), "", token[:-1], token + "=", token.swapcase(), "ü\ud800\0"):
            assert await receipts.post(7, forged, "finished", "trust me") == "forged"
        assert inbox.receipt is None and not inbox.bell.is_set()
    assert await receipts.post(7, "forged", "no rung at all") == "forged"  # nothing is said about its content
    assert receipts.kept(7) is None


async def test_the_token_is_the_same_for_every_attempt_and_after_a_restart(receipts: Receipts) -> None:
    """It is bound to the run and the secret, to nothing else."""
    assert receipts.token(7) == Receipts(SECRET, "https://elsewhere").token(7)
    assert len({receipts.token(run_id) for run_id in range(100)}) == 100


async def test_twice_counts_once(receipts: Receipts) -> None:
    """An agent that posts again, because it saw no answer, changes nothing: the first final word stands."""
    token = receipts.token(7)
    with receipts.expecting(7) as inbox:
        assert await receipts.post(7, token, "started") == "taken"
        assert await receipts.post(7, token, "started") == "again"
        assert await receipts.post(7, token, "accepted") == "again"
        assert await receipts.post(7, token, "finished", "one") == "taken"
        assert await receipts.post(7, token, "finished", "two") == "again"
        assert await receipts.post(7, token, "finished", None, None, "an error after all") == "again"
        assert inbox.text == "one"
    assert await receipts.post(7, token, "finished", "late") == "late"
    assert await receipts.post(7, token, "finished", "later") == "again"


async def test_what_was_said_earlier_stands_unless_it_is_said_anew(receipts: Receipts) -> None:
    """Text with `started`, usage with `finished`: both are kept."""
    token = receipts.token(7)
    with receipts.expecting(7) as inbox:
        await receipts.post(7, token, "started", "so far")
        await receipts.post(7, token, "finished", None, {"input_tokens": 1})
        assert inbox.receipt == Receipt("finished", "so far", {"input": 1})


async def test_a_late_receipt_is_handed_on_before_it_is_acknowledged() -> None:
    """What was answered with success is not lost: if it cannot be kept for good, the agent is not told that it is."""
    told: list[tuple[int, Receipt]] = []

    async def late(run_id: int, receipt: Receipt) -> None:
        if run_id == 13:
            raise OSError("the disk is full")
        told.append((run_id, receipt))

    receipts = Receipts(SECRET)
    assert await receipts.post(7, receipts.token(7), "finished", "done", late=late) == "late"
    assert told == [(7, Receipt("finished", "done"))]
    with pytest.raises(OSError, match="full"):
        await receipts.post(13, receipts.token(13), "finished", late=late)
    assert receipts.kept(13) is None


async def test_an_attempt_that_begins_while_a_late_receipt_is_written() -> None:
    """It finds the receipt in its inbox."""

    async def late(run_id: int, receipt: Receipt) -> None:
        waiting.__enter__()

    receipts = Receipts(SECRET)
    waiting = receipts.expecting(7)
    await receipts.post(7, receipts.token(7), "finished", "done", late=late)
    assert receipts._inboxes[7].text == "done"
    waiting.__exit__(None, None, None)


async def test_what_is_kept_is_bounded(receipts: Receipts) -> None:
    """The oldest go first."""
    for run_id in range(KEPT_MAX + 10):
        await receipts.post(run_id, receipts.token(run_id), "finished")
    assert receipts.kept(9) is None and receipts.kept(10) is not None


async def test_an_older_attempt_does_not_take_the_inbox_of_a_newer(receipts: Receipts) -> None:
    """After a lost lease both may be there for a while."""
    with receipts.expecting(7):
        newer = receipts.expecting(7)
        inbox = newer.__enter__()
    assert await receipts.post(7, receipts.token(7), "finished") == "taken"
    assert inbox.receipt is not None
    newer.__exit__(None, None, None)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        (("claimed",), "rung"),
        (("",), "rung"),
        ((None,), "rung"),
        ((["finished"],), "rung"),
        (("finished", 5), "text"),
        (("finished", None, None, ""), "error"),
        (("finished", None, None, {"a": 1}), "error"),
    ],
)
async def test_a_receipt_that_cannot_be_read_is_refused(receipts: Receipts, given: tuple, field: str) -> None:
    """By the field, with the cure."""
    with pytest.raises(Invalid) as refused:
        await receipts.post(7, receipts.token(7), *given)
    assert refused.value.errors[0].field == field


async def test_an_error_at_any_rung_is_a_failure(receipts: Receipts) -> None:
    """With what the agent said beside it."""
    with receipts.expecting(7) as inbox:
        await receipts.post(7, receipts.token(7), "started", "half", None, "it\nbroke" + "!" * 5000)
        assert inbox.receipt is not None
        result = inbox.receipt.result()
        assert isinstance(result, Failed) and result.error.startswith("it broke!") and len(result.error) <= 500


@settings(max_examples=40, deadline=None)
@given(text=st.text(), usage=st.recursive(st.none() | st.integers() | st.text(), st.lists))
async def test_whatever_is_posted_is_bounded(text: str, usage: object) -> None:
    """No text and no usage does harm."""
    receipts = Receipts(SECRET)
    with receipts.expecting(7) as inbox:
        assert await receipts.post(7, receipts.token(7), "finished", text * 1000, {"a": usage}) == "taken"
        assert inbox.receipt is not None and inbox.receipt.text is not None
        assert len(inbox.receipt.text.encode()) <= REPLY_MAX * 2


def test_a_short_secret_is_refused() -> None:
    """A secret that can be guessed is none."""
    with pytest.raises(ValueError, match="too short"):
        Receipts(b"short")
