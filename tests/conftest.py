"""Lets tests import what they share by the folder's name, as in `from features.kit import World`; and lets no test fail
because the machine was busy, or because they were started in the background."""

import gc
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))

import promises
from access import send_token_by_default
from sampling import examples

sys.path.append(str(Path(__file__).parents[1]))  # the bench, which is no part of the package

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a script; children would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)

gc.disable()  # until the tests are collected
settings.register_profile("wakeful", deadline=None, max_examples=examples(100))
settings.load_profile("wakeful")
send_token_by_default()


@pytest.hookimpl(tryfirst=True)  # before `-m` selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    promises.mark(items)
    # One worker waits while the others compute; at the end, the others would have to wait for it.
    items.sort(key=lambda item: item.get_closest_marker("waits") is None)


def pytest_collection_finish() -> None:
    gc.freeze()  # thousands of tests, and the modules they import: there is nothing to collect among them
    gc.enable()
