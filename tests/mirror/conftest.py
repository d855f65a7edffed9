"""Virtual time should not wait for a real disk: unless a test says `durable`, making files durable costs nothing."""

import os

import pytest


@pytest.fixture(autouse=True)
def _quick_disk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "durable" not in request.fixturenames:
        monkeypatch.setattr(os, "fsync", lambda fd: None)


@pytest.fixture
def durable() -> None:
    """This test has the real thing."""
