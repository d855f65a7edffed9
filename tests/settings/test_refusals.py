"""What cannot be accepted: every fault at once, each with its line and its cure."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from settings.kit import CONTRACT, ENVIRON, faults, loaded, said, write
from wakeful.config import SettingsRefused, load

# table and line, what the message must say
BAD = [
    ("[server]\nport = 70000", "server.port: 70000 is too large; give at most 65535"),
    ("[server]\nport = -1", "server.port: -1 is too small; give at least 0"),
    ('[server]\nport = "8377"', "server.port: '8377' is not a whole number; write one from 0 to 65535, without quotes"),
    ("[server]\nport = true", "server.port: true is not a whole number"),
    ("[server]\nport = nan", "server.port: nan is not a whole number"),
    ("[server]\nport = -inf", "server.port: -inf is not a whole number"),
    ("[server]\nport = 8377.0", "server.port: 8377.0 is not a whole number; write it without a decimal point"),
    (f"[server]\nport = {'9' * 400}", "server.port: 9999"),
    ('[server]\nhost = ""', "server.host: is empty"),
    ('[server]\nhost = "127.0.0.1:80"', "write a host without a port, like 127.0.0.1"),
    ('[server]\nhost = "[::1]"', "write the address alone, like ::1"),
    ('[server]\nhost = "256.1.1.1"', "is not an address to listen on"),
    ('[server]\nhost = "0.0.0.0"', "add token = {env = \"WAKEFUL_TOKEN\"} to [server], or listen on 127.0.0.1"),
    ('[server]\nhost = "::"', "can be reached by others, and there is no token"),
    ('[server]\nhost = "myhost"', "can be reached by others, and there is no token"),
    ("[server]\nhots = 1", "server.hots: unknown key; did you mean 'host'?"),
    ("[server]\nzzz = 1", "server.zzz: unknown key; the keys here are host, port, token"),
    ("[server]\ndays = 1", "server.days: unknown key here; it belongs to [log]"),
    ("[server]\ntoken = 5", "server.token: is not a secret; write {env = \"NAME\"}, {file = \"PATH\"} or a string"),
    ("[server]\ntoken = {env = \"A\", file = \"b\"}", "server.token: is not a secret"),
    ("[server]\ntoken = {env = \"NO_SUCH_NAME\"}", "the environment variable NO_SUCH_NAME is not set; set it in"),
    ("[server]\ntoken = {env = \"not a name\"}", "env is not a variable name"),
    ("[server]\ntoken = {file = \"no-such-file\"}", "the file no-such-file does not exist; create it"),
    ("[server]\ntoken = {file = \".\"}", "the file . cannot be read (it is a folder); name a readable file"),
    ("[server]\ntoken = {file = \"a\\u0000b\"}", "cannot be read ("),
    ('[server]\ntoken = ""', "server.token: is empty"),
    ('[server]\ntoken = "two\\nlines"', "contains a line break"),
    ('[store]\nurl = "mysql://host/db"', "store.url: is not a store; write sqlite:///FILE or postgresql://"),
    ('[store]\nurl = "wakeful.db"', "store.url: is not a store"),
    ('[store]\nurl = "http://[::1"', "store.url: is not a valid URL"),
    ('[schedules]\ntimezone = "Europe/Berln"', "is not an IANA zone; did you mean 'Europe/Berlin'?"),
    ('[schedules]\ntimezone = "localtime"', "is not an IANA zone"),
    ('[schedules]\nmirror = "agents"', "'agents' is not one of agent, all, off; did you mean 'agent'?"),
    ('[schedules]\nenabled = "yes"', "schedules.enabled: 'yes' is not true or false"),
    ('[limits]\nevery_min = "soon"', "limits.every_min: 'soon' is not a duration; write it like 90s, 30m"),
    ("[limits]\nevery_min = 10", "10 is not a duration; write it in quotes with its unit"),
    ('[limits]\nshutdown_grace = "2h"', "'2h' is too long; give at most 1h"),
    ('[limits]\nevery_min = "0s"', "'0s' is too short; give at least 1ms"),
    (f'[limits]\nevery_min = "{"9" * 5000}s"', "is too long; give at most 365d"),
    ('[limits]\nbody_max = "1 MiX"', "is not a size; write it in quotes with its unit"),
    ('[limits]\nbody_max = "1"', "is too small; give at least 1KiB"),
    ('[limits]\nbody_max = "9GiB"', "is too large; give at most 256MiB"),
    ("[limits]\nledger_days = 0", "limits.ledger_days: 0 is too small; give at least 1"),
    ('[agents.a]\nadapter = "opnai"', "cursor, amp; did you mean 'openai'?"),
    ('[agents.Coder]\nadapter = "echo"\n[agents.coder]\nadapter = "echo"', "the prefix 'coder.', as those of 'Coder'"),
    ('[agents."a.b"]\nadapter = "echo"\n[agents."a-b"]\nadapter = "echo"', "the prefix 'a-b.', as those of 'a.b'"),
    ("[agents.a]\nadapter = 5", "agents.a.adapter: 5 is not one of sessions"),
    ('[agents.a]\nadapter = "openai"', "agents.a.model: is missing; write model = \"some-model\""),
    ('[agents.a]\nadapter = "sessions"\nheaders = "x"', "agents.a.headers: 'x' is not a table; write {X-Name = "),
    ('[agents.a]\nadapter = "sessions"\nheaders = {"two words" = "x"}', "is not a header name"),
    ('[agents.a]\nadapter = "sessions"\nheaders = {Content-Length = "1"}', "is set by the connection itself"),
    ('[agents.a]\nadapter = "sessions"\nheaders = {X-A = "ü"}', "has a value that cannot be sent"),
    ('[agents.a]\nadapter = "sessions"\nheaders = {X-A = {env = "NO_SUCH"}}', "agents.a.headers.X-A: the environment"),
    ('[agents.a]\nadapter = "sessions"\nhistory_path = "/events"', "has no placeholder; put {id} where the id belongs"),
    ('[agents.a]\nadapter = "sessions"\nhistory_path = "a/{id}"', "is not a path; start it with /"),
    ('[agents.a]\nadapter = "sessions"\nhistory_file = "~/log"', "agents.a.history_file: '~/log' has no placeholder"),
    ('[agents.a]\nadapter = "sessions"\nproves = "all"', "'all' is not one of finished, idle, accepted"),
    ('[agents.a]\nadapter = "sessions"\nanswer_within = "2h"', "'2h' is too long; give at most 1h"),
    ('[agents.a]\nadapter = "command"\nargv = ["x"]\nlost_pattern = "("', "is not a regular expression"),
    ('[agents.a]\nadapter = "command"\nargv = ["x"]\nlost_pattern = "gone"', "has no effect: no session is continued"),
    ('[agents.a]\nadapter = "command"\nargv = ["x"]\nsandbox = "docker"', "agents.a.sandbox: 'docker' is not"),
    ('[agents.a]\nadapter = "command"\nargv = ["x"]\nsandbox = "bubblewrap"', "agents.a.cwd: is needed with a sandbox"),
    ('[agents.a]\nadapter = "command"\nargv = ["x"]\nsandbox_write = ["/srv"]', "has no effect without a sandbox"),
    ('[agents.a]\nadapter = "command"\nargv = ["x"]\nsandbox_network = false', "has no effect without a sandbox"),
    ('[agents.a]\napi_key = "k"', "it belongs to adapter = \"openai\" or adapter = \"anthropic\""),
    ('[agents."a b"]', "agents.\"a b\": 'a b' is not a name"),
    ("[agents]\na = 5", "agents.a: 5 is not a table; write [agents.a]"),
    ('[agents.a]\nadapter = "call"\ntarget = "no function"', "is not MODULE:FUNCTION"),
    ('[agents.a]\nadapter = "command"\nargv = []', "agents.a.argv: has 0 items; give at least 1"),
    ('[agents.a]\nadapter = "command"\nargv = [""]', "agents.a.argv[0]: is empty; write the name of a program"),
    ('[agents.a]\nadapter = "command"\nargv = "run it"', "'run it' is not a list; write ["),
    ('[agents.a]\nadapter = "command"\nargv = ["a"]\nresume_argv = ["b"]', "put {session} where the id belongs"),
    ('[agents.a]\nadapter = "command"\nargv = ["a"]\nresume_argv = ["{session}"]', "set session_key or session_"),
    ('[agents.a]\nadapter = "command"\nargv = ["a"]\nsession_pattern = "("', "is not a regular expression"),
    ('[agents.a]\nadapter = "command"\nargv = ["a"]\nsession_pattern = "a"', "has 0 groups; put (…) around"),
    ('[agents.a]\nadapter = "command"\nargv = ["a"]\nenv = {"A B" = "x"}', "is not a variable name"),
    ('[agents.a]\nadapter = "sessions"\nurl = "ftp://x"', "'ftp://x' is not an http URL; write it like https://"),
    ('[agents.a]\nadapter = "sessions"\nurl = "http://x:99999"', "is not a valid URL"),
    ('[heartbeat]\nagent = "nobody"', "there is no agent 'nobody'; add [agents.nobody], or name one of default"),
    ('[heartbeat]\nack_token = "two words"', "is not a word; write it without spaces"),
    ('[heartbeat]\nack_match = "middle"', "'middle' is not one of edges, anywhere; write one of them"),
    ('[heartbeat]\nactive_hours = "9-5"', "heartbeat.active_hours: '9-5' is not a table"),
    ('[heartbeat]\nactive_hours = {start = "09:00"}', "heartbeat.active_hours.end: is missing; write end = \"09:00\""),
    ('[heartbeat]\nactive_hours = {start = "24:00", end = "24:00"}', "'24:00' is not a time of day"),
    ('[heartbeat]\nactive_hours = {start = 09:00:00, end = "10:00"}', "write it in quotes, like \"09:00\""),
    ("[hooks.door]", "hooks.door.token: is missing; write token = {env = \"NAME\"}"),
    ("[delivery]\nretries_max = 101", "give at most 100"),
    ("[channels.a]", "channels.a.type: is missing; write type = one of telegram, webhook, console, inbox, apprise"),
    ('[channels.a]\ntype = "sms"', "'sms' is not one of telegram, webhook, console, inbox, apprise"),
    ('[channels.last]\ntype = "console"', "'last' means the channel of the last interaction; choose another name"),
    ('[channels.inbox]\ntype = "console"', "channels.inbox: is always the page"),
    ('[channels.a]\ntype = "telegram"\ntoken = "1:x"\nchat = "me"', "write its number or @name"),
    ('[channels.a]\ntype = "webhook"\nurl = "http://10.1.2.3/"', "write allow_private = true"),
    ('[channels.a]\ntype = "webhook"\nurl = "http://localhost/"', "channels.a.url: points to this machine"),
    ("[quota]\nslots_max = 65", "give at most 64"),
    ('[quota]\nretry_window = "25h"', "'25h' is too long; give at most 24h"),
    ('[slots.a]\napi_key = "key1"\ninterval = "30s"', "'30s' is too short; give at least 1m"),
    ('[slots.a]\napi_key = "key1"\ntimes = ["9:00"]', "slots.a.times[0]: '9:00' is not a time of day; write HH:MM"),
    ('[slots.a]\napi_key = "key1"\ntimes = ["09:00", "09:00"]', "slots.a.times[1]: '09:00' is listed twice; keep one"),
    (f'[slots.a]\napi_key = "key1"\ntimes = {[f"0{i}:00" for i in range(6)]}', "has 6 items; give at most 5"),
    ('[slots.a]\napi_key = "key1"\nbase_url = "http://api.z.ai"', "sends the key unencrypted; write https://"),
    ('[slots.a]\napi_key = "key1"\nslots_max = 1', "it belongs to [quota]"),
    (f'[slots.{"a" * 33}]\napi_key = "key1"', "has 33 characters; give at most 32"),
    ('[slots.a]\nprovider = "http"\nquota_url = "https://x"\ninterval = "1h"', "wake_url: is missing, and interval"),
    ('[slots.a]\nprovider = "http"\nquota_url = "https://x"\nwake_body = "{"', "is not JSON"),
    ("[[slots]]", "slots: a list is not a table; write [slots.NAME]"),
    ('[workflows]\nmodules = ["not/a/module"]', "workflows.modules[0]: 'not/a/module' is not a module"),
    ("[log]\ndays = 366", "log.days: 366 is too large; give at most 365"),
    ("log = 5", "log: 5 is not a table; write [log] and its settings below"),
    ("[logs]\ndays = 5", "logs: unknown key; did you mean 'log'?"),
    ("port = 5", "port: unknown key here; it belongs to [server]"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"), BAD, ids=[f"{i}-{text.split(chr(10))[-1][:40]}" for i, (text, _) in enumerate(BAD)]
)
def test_a_bad_value_is_refused_with_its_line_and_cure(tmp_path: Path, text: str, message: str) -> None:
    """Wrong type, out of range, unknown, misspelt: each says what to write instead."""
    found = faults(tmp_path, f"# a comment\n\n{text}\n")
    assert len(found) == 1, found
    assert message in str(found[0])
    assert found[0].line is not None
    assert 3 <= found[0].line <= 2 + len(text.splitlines())
    assert len(found[0].message) < 600


SYNTAX = [
    ("[server\nport = 1", 1, "header is not closed"),
    ('[server]\nhost = "127', 2, "is not closed"),
    ('[server]\nhost = """127\nport = 1', 2, "is not closed"),
    ("[server]\nport = [1", 2, "a list is not closed"),
    ("[server]\nport = [1,", 2, "close every [ and {"),
    ("[slots.a]\ntimes = [09:00]", 2, "quotes around strings"),
    ("[server]\ntoken = {env = ", 2, "this is not a TOML value"),
    ("[server]\nport = 1\nport = 2", 3, "server.port: is defined twice, first in line 2; keep one"),
    ("[server]\nport = 1\n[log]\n[server]", 4, "server: is defined twice, first in line 1; keep one"),
    ("[server]\nport = 1 2", 2, "unexpected text after the value"),
    ("[server]\nport", 2, "a key has no value; write key = value"),
    ("[server]\nport =", 2, "has no value; write one after the ="),
    ("[schedules]\nenabled = True", 2, "True is written true in TOML"),
    ("[schedules]\ntimezone = Europe/Berlin", 2, 'is a string without quotes; write timezone = "…"'),
    ("[heartbeat]\nevery = 30m # half an hour", 2, 'is a string without quotes; write every = "…"'),
    ('[store]\nurl = "C:\\data"', 2, "write \\\\, or put the string in single quotes"),
    ("= 5", 1, "does not start with a key"),
    ("[server]\nport = 2026-13-45", 2, "unexpected text after the value"),
    (f"[server]\nport = {'9' * 5000}", 2, "a number has too many digits"),
    (f"[server]\nport = {'[' * 500}", 2, "nested deeper than 32 levels; reduce the nesting"),
    (f"{'a.' * 5000}a = 1", 1, "nested deeper than 32 levels"),
    ("a.b = 1\n[a]\nc = 1", 2, "twice"),
    ("log = {days = 1}\nlog.x = 2", 2, "cannot be extended"),
]


@pytest.mark.parametrize(
    ("text", "line", "message"), SYNTAX, ids=[message[:30] + str(line) for _, line, message in SYNTAX]
)
def test_a_mistake_in_the_writing_has_its_line_and_cure(tmp_path: Path, text: str, line: int, message: str) -> None:
    """What TOML itself cannot read."""
    found = faults(tmp_path, text)
    assert [fault.line for fault in found] == [line]
    assert message in str(found[0])


def test_everything_wrong_is_told_at_once(tmp_path: Path) -> None:
    """One correction of the file, not one for each fault; in the order of the file."""
    text = """\
prt = 1
[server]
host = "0.0.0.0"
port = "x"
[limits]
agent_lane = "paralel"
[heartbeat]
agent = "nobody"
active_hours = {start = "9", end = "25:00", timezone = "Nowhere"}
[agents.a]
adapter = "openai"
max_tokens = 0
extra = 1
[slots.a]
times = [
  "09:00",
  "9",
  7,
]
"""
    found = [(fault.line, fault.field) for fault in faults(tmp_path, text)]
    assert found == [
        (1, "prt"),
        (3, "server.host"),
        (4, "server.port"),
        (6, "limits.agent_lane"),
        (8, "heartbeat.agent"),
        (9, "heartbeat.active_hours.start"),
        (9, "heartbeat.active_hours.end"),
        (9, "heartbeat.active_hours.timezone"),
        (10, "agents.a.model"),
        (12, "agents.a.max_tokens"),
        (13, "agents.a.extra"),
        (14, "slots.a.api_key"),
        (17, "slots.a.times[1]"),
        (18, "slots.a.times[2]"),
    ]


def test_texts_without_quotes_do_not_hide_the_other_faults(tmp_path: Path) -> None:
    """The commonest mistake spoils only its own line."""
    text = "[heartbeat]\nevery = 30m\nack_chars_max = -1\n[schedules]\ntimezone = Asia/Shanghai\n[log]\ndays = 0\n"
    assert [fault.line for fault in faults(tmp_path, text)] == [2, 3, 5, 7]


def test_what_a_spoilt_line_would_have_said_is_not_missed(tmp_path: Path) -> None:
    """A token that cannot be read is one fault, not two; an adapter that cannot be read makes no key unknown."""
    text = '[server]\nhost = "0.0.0.0"\ntoken = abc\n[agents.a]\nadapter = openai\nmodel = "m"\napi_key = "key1"\n'
    assert [fault.field for fault in faults(tmp_path, text)] == ["server.token", "agents.a.adapter"]


def test_too_many_slots_are_refused(tmp_path: Path) -> None:
    """The limit is itself a setting."""
    slots = "".join(f'[slots.s{number}]\napi_key = "key-{number}"\n' for number in range(5))
    assert "has 5 slots, and quota.slots_max is 4" in said(tmp_path, slots)[0]
    assert len(loaded(tmp_path, f"[quota]\nslots_max = 5\n{slots}").settings.slots) == 5


def test_a_fault_in_an_option_says_that_it_was_not_in_the_file(tmp_path: Path) -> None:
    """It has no line."""
    [fault] = faults(tmp_path, "", **{"server.port": "x"})
    assert fault.line is None
    assert str(fault).startswith("command line: server.port: 'x' is not a whole number")
    [fault] = faults(tmp_path, "", **{"server.host": "0.0.0.0"})
    assert "there is no token" in fault.message


def test_an_option_does_not_hide_what_is_wrong_in_the_file(tmp_path: Path) -> None:
    """A table that is none cannot take it."""
    [fault] = faults(tmp_path, "server = 5\n", **{"server.port": 1})
    assert (fault.field, fault.line) == ("server", 1)


def test_a_hundred_faults_are_enough(tmp_path: Path) -> None:
    """The rest is counted."""
    found = faults(tmp_path, "".join(f"key{number} = 1\n" for number in range(5_000)))
    assert len(found) == 101
    assert found[-1].message == "and 4900 more; correct these first"


def test_a_huge_file_is_refused(tmp_path: Path) -> None:
    """A megabyte is no settings file, and is not even parsed."""
    [fault] = faults(tmp_path, "#" * 1_000_000)
    assert "larger than 256 KiB" in fault.message
    assert loaded(tmp_path, "#" * 200_000)


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        (b"\x89PNG\r\n\x1a\n\x00\x00", 1, "not UTF-8 text (byte 0x89); save it as UTF-8"),
        (b"[server]\nhost = '\xff'\n", 2, "not UTF-8 text (byte 0xff)"),
        ("[log]\n".encode("utf-16"), 1, "not UTF-8 text (UTF-16)"),
        (b"\x00\x01\x02", 1, "does not start with a key"),
        (b"[server]\n\x00", 2, "does not start with a key"),
        (bytes(range(128)), 1, "does not start with a key"),
    ],
)
def test_binary_garbage_is_refused(tmp_path: Path, content: bytes, line: int, message: str) -> None:
    """With the line of the first byte that cannot be text."""
    [fault] = faults(tmp_path, content)
    assert fault.line == line
    assert message in fault.message


def test_a_folder_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    """Neither read nor taken for a missing file."""
    (tmp_path / "wakeful.toml").mkdir()
    with pytest.raises(SettingsRefused, match="it is a folder"):
        load(tmp_path)


def test_a_pipe_in_place_of_the_file_does_not_block(tmp_path: Path) -> None:
    """Nobody writes to it; opening it must not wait."""
    os.mkfifo(tmp_path / "wakeful.toml")
    with pytest.raises(SettingsRefused, match="it is not a regular file"):
        load(tmp_path)
    with pytest.raises(SettingsRefused, match="it is not a regular file"):
        load(tmp_path, file=Path("/dev/zero"))


def test_a_file_that_cannot_be_opened_is_refused(tmp_path: Path) -> None:
    """Here a link to itself, which not even root can read."""
    (tmp_path / "wakeful.toml").symlink_to(tmp_path / "wakeful.toml")
    with pytest.raises(SettingsRefused, match="line 1: the file cannot be read"):
        load(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_refused(tmp_path: Path) -> None:
    """It is not taken for a missing one."""
    write(tmp_path, "[log]\ndays = 3\n").chmod(0)
    with pytest.raises(SettingsRefused, match="Permission denied"):
        load(tmp_path)


def test_a_link_to_nothing_is_refused(tmp_path: Path) -> None:
    """Whoever made the link did not want the defaults."""
    (tmp_path / "wakeful.toml").symlink_to(tmp_path / "gone.toml")
    with pytest.raises(SettingsRefused, match="a link with a missing target"):
        load(tmp_path)


def test_a_file_asked_for_by_name_must_exist(tmp_path: Path) -> None:
    """`check FILE` of a misspelt name is not all defaults."""
    with pytest.raises(SettingsRefused, match=r"other.toml: 1 error\n  line 1: the file does not exist"):
        load(tmp_path, file=tmp_path / "other.toml")


def test_another_file_is_read_for_the_same_home(tmp_path: Path) -> None:
    """`check FILE` looks for secrets where the daemon would."""
    (tmp_path / "key").write_text("from the home\n")
    draft = tmp_path / "draft.toml"
    draft.write_text('[server]\ntoken = {file = "key"}\n')
    token = load(tmp_path, file=draft).settings.server.token
    assert token is not None
    assert token.reveal() == "from the home"


@pytest.mark.parametrize("cut", range(0, len(CONTRACT), 61))
def test_a_half_written_file_is_read_or_refused(tmp_path: Path, cut: int) -> None:
    """Never anything else."""
    text = CONTRACT[:cut]
    write(tmp_path, text)
    try:
        load(tmp_path, environ=ENVIRON)
    except SettingsRefused as refused:
        assert all(error.line for error in refused.errors)
