"""The ack token: what is kept to ourselves, and what a person gets to see."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.core.heartbeat.acknowledgement import AckRules, judge, stripped

EDGES = AckRules()
ANYWHERE = AckRules(match="anywhere")
OK = "HEARTBEAT_OK"


@pytest.mark.parametrize("reply", ["", "  \n\t ", "\u2003"])
def test_an_empty_reply_is_ok_empty(reply: str) -> None:
    """White space says nothing."""
    assert judge(reply, EDGES) == ("ok-empty", None)


@pytest.mark.parametrize(
    "reply",
    [OK, f" {OK}\n", f"{OK} nothing new", f"All quiet. {OK}", f"**{OK}**", f"`{OK}`.", f"{OK}!", f"{OK} {'x' * 300}"],
)
def test_the_token_at_an_edge_with_little_else_is_an_acknowledgement(reply: str) -> None:
    """At the start or the end, in whatever dress; the rest may have 300 characters."""
    assert judge(reply, EDGES) == ("ok-ack", None)


def test_one_character_more_is_sent_without_the_token() -> None:
    """301 characters are something to say."""
    assert judge(f"{OK} {'x' * 301}", EDGES) == ("sent", "x" * 301)
    assert judge(f"{OK}{' ' * 500}{'x' * 300}", EDGES).verdict == "ok-ack"  # white space around it does not count


def test_in_the_middle_it_counts_only_for_who_says_anywhere() -> None:
    """Any reply that contains the token is dropped, if a setting says so."""
    reply = f"I was told to answer {OK} if all is well"
    assert judge(reply, EDGES) == ("sent", "I was told to answer  if all is well")
    assert judge(reply, ANYWHERE) == ("ok-ack", None)


def test_another_word_is_not_the_token() -> None:
    """It stands for itself."""
    assert judge("HEARTBEAT_OKAY then", EDGES) == ("sent", "HEARTBEAT_OKAY then")
    assert judge("heartbeat_ok", EDGES) == ("sent", "heartbeat_ok")


def test_explicit_reminders_are_never_suppressed() -> None:
    """Only the agent's own token keeps a reply back (NB#2369): no judge, no word of ours."""
    assert judge("Nothing to report.", EDGES).verdict == "sent"
    assert judge("No reply needed, but: take your pills", EDGES).verdict == "sent"


def test_with_no_room_at_all_only_the_token_itself_is_kept_back() -> None:
    """chars_max = 0."""
    rules = AckRules(chars_max=0)
    assert judge(OK, rules).verdict == "ok-ack"
    assert judge(f"{OK} .", rules) == ("sent", ".")


@given(st.lists(st.sampled_from([OK, " ", "a", "\n", "HEARTBEAT_", "OK", "*", "é"]), max_size=12), st.booleans())
def test_the_token_never_reaches_a_person(parts: list[str], is_anywhere: bool) -> None:
    """Whatever the reply is made of."""
    judged = judge("".join(parts), ANYWHERE if is_anywhere else EDGES)
    if judged.text is not None:
        assert judged.text.strip()
        assert stripped(judged.text, OK) == judged.text
        assert OK not in judged.text.split()
