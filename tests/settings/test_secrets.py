"""Secrets: read by reference, shown nowhere, taken out of every text."""

from __future__ import annotations

import base64
import copy
import json
import pprint
import traceback
from dataclasses import asdict
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from settings.kit import faults, loaded, write
from wakeful.config import MASK, Redactor, Secret, SecretUrl, SettingsRefused, load, to_json
from wakeful.config.model import SETTINGS

HIDDEN = "hunter2-or-longer"


def secret_file(home: Path, text: str, name: str = "key") -> Path:
    file = home / name
    file.write_text(text)
    file.chmod(0o600)
    return file


def test_a_secret_shows_only_the_mask() -> None:
    """However it is printed, copied or looked into."""
    secret = Secret(HIDDEN)
    shapes = [str(secret), repr(secret), f"{secret}", f"{secret!r:>40}", pprint.pformat([secret]), str({"x": secret})]
    shapes += [repr(copy.deepcopy(secret)), "%s" % secret, repr(copy.copy(secret))]  # noqa: UP031
    assert not any(HIDDEN in shape for shape in shapes)
    assert str(secret) == MASK
    assert secret.reveal() == HIDDEN
    assert not hasattr(secret, "__dict__")


def test_secrets_are_equal_by_what_they_hide() -> None:
    """So that a changed one is a change."""
    assert Secret("a") == Secret("a")
    assert Secret("a") != Secret("b")
    assert Secret("a") != "a"
    assert len({Secret("a"), Secret("a")}) == 1
    assert SecretUrl("http://a") == SecretUrl("http://a") != SecretUrl("http://b")
    assert len({SecretUrl("http://a"), SecretUrl("http://a")}) == 1


def test_secrets_come_from_the_environment_a_file_or_the_text(tmp_path: Path) -> None:
    """The last line end of a file is not part of it, and a relative path begins at the home folder."""
    secret_file(tmp_path, "from the file\n")
    text = """
[hooks.a]
token = {env = "DOOR_TOKEN"}
[hooks.b]
token = {file = "key"}
[hooks.c]
token = "plain-text"
"""
    found = loaded(tmp_path, text)
    hooks = found.settings.hooks
    assert [hook.token.reveal() for hook in hooks.values()] == ["token-of-the-door", "from the file", "plain-text"]
    assert [found.sources[f"hooks.{name}.token"].origin for name in "abc"] == ["environment", "secretFile", "file"]
    assert (found.sources["hooks.b.token"].name, found.sources["hooks.b.token"].line) == ("key", 5)
    assert set(found.secrets) == {"token-of-the-door", "from the file", "plain-text"}
    assert found.files == {tmp_path / "wakeful.toml", tmp_path / "key"}
    assert found.warnings == ()


def test_nothing_printed_of_the_settings_tells_a_secret(tmp_path: Path) -> None:
    """The models, their JSON, the loaded whole, and the answer of the API."""
    text = f"""
[server]
token = "{HIDDEN}"
[store]
url = "postgresql://user:{HIDDEN}@host/db?password={HIDDEN}&schema=mine"
[agents.a]
adapter = "command"
argv = ["x"]
[channels.a]
type = "apprise"
url = "tgram://{HIDDEN}/1"
[channels.b]
type = "webhook"
url = "https://user:{HIDDEN}@example.org/in?token={HIDDEN}"
"""
    found = loaded(tmp_path, text)
    settings = found.settings
    shapes = [repr(found), str(found), repr(settings), str(settings), str(asdict(settings))]
    shapes += [
        json.dumps(SETTINGS.write(settings), default=str),
        json.dumps(to_json(found)),
        pprint.pformat(settings),
        str(found.written),
    ]
    assert not any(HIDDEN in shape for shape in shapes)
    assert settings.store.url.reveal() == f"postgresql://user:{HIDDEN}@host/db?password={HIDDEN}&schema=mine"
    assert str(settings.store.url) == f"postgresql://user:{MASK}@host/db?password={MASK}&schema=mine"


def test_a_variable_is_a_secret_only_if_it_is_written_as_one(tmp_path: Path) -> None:
    """ "true" as a secret would take every `true` out of what the program prints."""
    text = '[agents.a]\nadapter = "claude"\nenv = {FLAG = "true", KEY = {env = "GLM_KEY"}}\n'
    write(tmp_path, text)
    found = load(tmp_path, environ={"GLM_KEY": HIDDEN})
    assert found.secrets == (HIDDEN,)
    assert to_json(found)["settings"]["agents"]["a"]["env"] == {"FLAG": "true", "KEY": MASK}


def test_an_address_without_a_password_is_no_secret(tmp_path: Path) -> None:
    """It may stand in a log; of one with a password only that must not."""
    text = '[channels.a]\ntype = "webhook"\nurl = "https://example.org/in"\n'
    assert loaded(tmp_path, text).secrets == ()
    assert loaded(tmp_path, '[store]\nurl = "postgresql://me:pass%40word@h/d"\n').secrets == (
        "pass%40word",
        "pass@word",
    )


def test_an_address_given_by_reference_is_not_shown_at_all(tmp_path: Path) -> None:
    """Whoever keeps it elsewhere has a reason."""
    secret_file(tmp_path, "https://example.org/services/T000/B000/xyz")
    found = loaded(tmp_path, '[channels.a]\ntype = "webhook"\nurl = {file = "key"}\n')
    assert to_json(found)["settings"]["channels"]["a"]["url"] == MASK
    assert "https://example.org/services/T000/B000/xyz" in found.secrets


@pytest.mark.parametrize(
    "text",
    [
        f'[server]\ntoken = {{value = "{HIDDEN}"}}',
        f'[server]\ntoken = ["{HIDDEN}"]',
        f'[server]\ntoken = "{HIDDEN}\\u0007"',
        f"[server]\ntoken = {HIDDEN}",
        f'[server]\ntoken = "{HIDDEN}',
        f'[server]\ntokn = "{HIDDEN}"',
        f'[server]\ntoken = "{HIDDEN}"\ntoken = "{HIDDEN}"',
        f'[server]\ntoken = {{env = "{HIDDEN}"}}',
        f'[server]\ntoken = "{HIDDEN}"\nport = "{HIDDEN}"',
        f'[store]\nurl = "mysql://u:{HIDDEN}@h/d"',
        f'[store]\nurl = "http://u:{HIDDEN}@[h/d"',
        f'[agents.a]\napi_key = "{HIDDEN}"',
        f'[agents.a]\nurl = "https://u:{HIDDEN}@example.org"',
        f'[agents.a]\nurl = "gopher://example.org/?key={HIDDEN}"',
        f'[channels.a]\ntype = "webhook"\nurl = "ftp://{HIDDEN}/"',
        f'[channels.a]\ntype = "webhook"\nurl = "http://u:{HIDDEN}@127.0.0.1/"',
        f'[channels.a]\ntype = "telegram"\ntoken = "{HIDDEN}"',
    ],
)
def test_no_fault_tells_a_secret(tmp_path: Path, text: str) -> None:
    """Neither its message, nor the exception, nor one that hangs on it."""
    write(tmp_path, text)
    with pytest.raises(SettingsRefused) as caught:
        load(tmp_path, environ={})
    refused = caught.value
    assert refused.__cause__ is None
    assert refused.__context__ is None
    shapes = [str(refused), repr(refused), *map(repr, refused.errors), *traceback.format_exception(refused)]
    assert not any(HIDDEN in shape for shape in shapes)


def test_an_empty_secret_is_a_fault(tmp_path: Path) -> None:
    """An empty token would let everybody in."""
    secret_file(tmp_path, " \n")
    write(tmp_path, '[hooks.a]\ntoken = {env = "EMPTY"}\n[hooks.b]\ntoken = {file = "key"}\n')
    with pytest.raises(SettingsRefused) as caught:
        load(tmp_path, environ={"EMPTY": ""})
    assert [error.message for error in caught.value.errors] == [
        "EMPTY is empty; put the secret into it",
        "key is empty; put the secret into it",
    ]


@pytest.mark.parametrize(
    ("content", "message"), [(b"\xff\xfe", "is not UTF-8 text"), (b"a\nb", "line break"), (b"x" * 70_000, "64 KiB")]
)
def test_a_secret_file_holds_one_line_of_text(tmp_path: Path, content: bytes, message: str) -> None:
    """Anything else is the wrong file."""
    (tmp_path / "key").write_bytes(content)
    [fault] = faults(tmp_path, '[hooks.a]\ntoken = {file = "key"}\n')
    assert message in fault.message


def test_files_that_were_missing_are_known_to_whoever_watches(tmp_path: Path) -> None:
    """When the file appears, another attempt is due."""
    write(tmp_path, '[hooks.a]\ntoken = {file = "later"}\n')
    with pytest.raises(SettingsRefused) as caught:
        load(tmp_path)
    assert caught.value.files == {tmp_path / "wakeful.toml", tmp_path / "later"}


def test_secrets_open_to_others_are_warned_about(tmp_path: Path) -> None:
    """In their own file, or in the settings; and those too short to be found in logs."""
    secret_file(tmp_path, "from-a-file").chmod(0o644)
    text = '[hooks.a]\ntoken = {file = "key"}\n[hooks.b]\ntoken = "abc"\n'
    write(tmp_path, text).chmod(0o640)
    warnings = load(tmp_path).warnings
    assert [str(warning) for warning in warnings] == [
        "line 2: hooks.a.token: other users of this machine can read it in key; run chmod 600 on that file",
        "line 4: hooks.b.token: other users of this machine can read it in wakeful.toml; run chmod 600 on that file",
        "line 4: hooks.b.token: is shorter than 4 characters and is not masked in logs; use a longer one",
    ]


def test_an_open_file_without_secrets_is_nobody_s_business(tmp_path: Path) -> None:
    """Nothing in it is worth hiding."""
    write(tmp_path, '[store]\nurl = "sqlite:///x.db"\n').chmod(0o644)
    assert load(tmp_path).warnings == ()


@given(st.text(min_size=4, max_size=40), st.text(max_size=20), st.text(max_size=20))
def test_no_known_secret_survives_in_a_text(secret: str, before: str, after: str) -> None:
    """As it is, in an address, in JSON, in base64."""
    redact = Redactor([secret]).redact
    raw = secret.encode(errors="surrogatepass")
    for form in (secret, quote(secret, safe=""), quote_plus(secret), json.dumps(secret)[1:-1]):
        assert redact(form) == MASK
    for form in (base64.b64encode(raw).decode(), base64.urlsafe_b64encode(raw).decode().rstrip("=")):
        assert form not in redact(f"x {form} y")
    if MASK not in secret and secret not in MASK:
        assert secret not in redact(f"{before}{secret}{after}").replace(MASK, "\0" * 50)


@pytest.mark.parametrize("user", ["", "a", "ab", "abc"])
@pytest.mark.parametrize("after", ["", "!", "!!"])
def test_a_secret_is_found_inside_longer_base64(user: str, after: str) -> None:
    """As in the header of basic authentication, wherever it begins and ends."""
    header = base64.b64encode(f"{user}:{HIDDEN}{after}".encode()).decode()
    redacted = Redactor([HIDDEN]).redact(header)
    assert MASK in redacted
    assert len(redacted) < 16


def test_a_secret_within_another_does_not_leave_the_rest() -> None:
    """The longer one goes as a whole."""
    assert Redactor(["abcd", "abcd-efgh"]).redact("x abcd-efgh abcd") == f"x {MASK} {MASK}"


def test_short_secrets_are_not_looked_for() -> None:
    """They would be found in every second word."""
    assert Redactor(["abc", ""]).redact("abcabc") == "abcabc"
    assert Redactor().redact("text") == "text"


def test_a_replaced_secret_stays_known() -> None:
    """An answer that quotes the old one may still be on its way; and the memory has an end."""
    redactor = Redactor(["old-secret"])
    redactor.learn(["new-secret"])
    assert redactor.redact("old-secret new-secret") == f"{MASK} {MASK}"
    redactor.learn(f"secret-{number:04}" for number in range(1_000))
    assert redactor.redact("old-secret secret-0999") == f"old-secret {MASK}"
