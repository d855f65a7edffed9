"""Sentences such as `every weekday at 9 summarise my mail`: what they mean, and what is asked back."""

import pytest
from tests.core.sentences import OF_OTHERS, OURS, SENTENCES, Asked, Understood

from wakeful.core.time.timing_json import read_timing, timing_to_json


def test_there_are_fifty_sentences_half_of_them_by_others() -> None:
    assert len(OURS) == len(OF_OTHERS) == len({text for text, _ in SENTENCES}) / 2 == 25


@pytest.mark.parametrize("means", [means for _, means in SENTENCES])
def test_each_expects_a_timing_that_a_definition_can_have_or_a_question(means: Understood | Asked) -> None:
    match means:
        case Understood(schedule=schedule, prompt=prompt):
            assert timing_to_json(read_timing(schedule)) == schedule
            assert prompt
        case Asked(about=about):
            assert about
