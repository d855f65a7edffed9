"""Traces of runs: what a collector gets, with times from the ledger, and what happens when it is away."""

import asyncio
import json
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from channels.receiver import receiving
from edges.http.kit import daemon
from edges.http.test_daemon import ask
from embedding import jobs
from patience import PATIENCE
from telemetry.collector import Collector, Received, collecting
from wakeful import Wakeful, cron, every
from wakeful.app.options import Host
from wakeful.cli.main import root
from wakeful.core.run.traces import SpanId, attempt_of, delivery_of, run_of, turn_of
from wakeful.core.self_scheduling.proposals import Ownership
from wakeful.core.time.instants import MINUTE, parse_instant
from wakeful.features.schedules.run_views import RunView
from wakeful.integrations.channels.webhook import WebhookChannel
from wakeful.observe.otlp import endpoint_in
from wakeful.ports.ownerships import Ownerships
from wakeful.testing import virtual

START = "2026-03-28T00:00Z"
FAILS = 4
"""The hour whose first two attempts fail."""


async def app_of(folder: Path, **options: Any) -> Wakeful:
    return Wakeful(folder / "wakeful.db", timezone="UTC", name="node-a", **options)


def refusing_port() -> str:
    """An address where nothing listens: port 9, discard, is never bound here."""
    return "http://127.0.0.1:9"


# --- a day of runs ---------------------------------------------------------------------------------------------------


async def test_a_day_of_runs_is_one_linked_trace_per_run(tmp_path: Path) -> None:
    """With the times of the ledger, attempts inside runs, turns inside attempts, and links to what created a run."""
    failures = Counter[str]()

    def answer(fire: Any, prompt: str) -> str:
        if fire.planned_at.hour == FAILS and failures[fire.idempotency_key] < 2:
            failures[fire.idempotency_key] += 1
            raise RuntimeError("the model is away")
        return "good morning"

    app = await app_of(tmp_path)
    told: list[str] = []
    app.register_channel("desk", "me", told.append)
    with collecting() as collector:
        async with virtual(app, start=START, agents={"default": answer}, on_command=lambda *_: "done") as clock:
            await app._change_otel(collector.url)
            await app.add("brief", every("2h"), prompt="what is new?", deliver={"channel": "desk"}, retries=3)
            await app.add("tidy", cron("30 * * * *"), command=["tidy", "up"])
            await app.add("count", every("3h"), call=jobs.note)
            await clock.advance("1d")
            first = (await app.runs("tidy"))[-1]
            await app.replay(first.run_id)
            await _own(app, "tidy", (await app.runs("brief"))[-1])
            await clock.advance("40m")
            rows = [row for slug in ("brief", "tidy", "count") for row in await app.runs(slug, limit=500)]
            assert await app._tracing.drained(PATIENCE)
    _check(collector, {row.run_id: row for row in rows})
    assert len(told) == len(collector.named("deliver")) == 12


async def _own(app: Wakeful, slug: str, run: RunView) -> None:
    """Make a schedule one that an agent created in a run."""

    def write(tx: Any) -> None:
        schedule = tx.schedules.by_slugs([slug])[slug]
        tx[Ownerships].put(Ownership(schedule.schedule_id, "coder", "schedule", run.run_id, run.slug, 1, None, 0))

    await app._store.write(write)


def _check(collector: Collector, rows: dict[int, RunView]) -> None:
    roots = {int(span.attributes["wakeful.run_id"]): span for span in collector.named("run ")}
    assert collector.paths == {"/v1/traces"}
    assert roots.keys() == rows.keys()
    assert len({span.trace for span in roots.values()}) == len(rows) == len(collector.named("run "))
    assert {span.resource["service.name"] for span in collector.spans} == {"wakeful"}
    assert {span.resource["service.instance.id"] for span in collector.spans} == {"node-a"}
    attempts = [span for span in collector.spans if span.name.startswith("attempt ")]
    by_run: dict[int, list[Received]] = {}
    for span in sorted(attempts, key=lambda one: one.began):
        by_run.setdefault(int(span.attributes["wakeful.run_id"]), []).append(span)
    for run_id, row in rows.items():
        own, tried = roots[run_id], by_run[run_id]
        assert (own.parent, own.kind, own.error) == ("", "internal", None)
        assert (own.began, own.ended) == (_ms(row.due_at), _ms(row.ended_at))
        assert [span.attributes["wakeful.attempt"] for span in tried] == list(range(1, row.attempt + 1))
        assert {(span.trace, span.parent) for span in tried} == {(own.trace, own.span)}
        assert tried[-1].ended == own.ended
        assert [span.error for span in tried[:-1]] == ["RuntimeError: the model is away"] * (row.attempt - 1)
        assert tried[-1].error is None
    failed = [row for row in rows.values() if row.attempt == 3]
    assert len(failed) == 1
    _check_turns(collector, attempts, rows)
    _check_links(roots, rows)


def _check_turns(collector: Collector, attempts: list[Received], rows: dict[int, RunView]) -> None:
    turns = collector.named("invoke_agent default")
    of_agent = {span.span: span for span in attempts if span.attributes["wakeful.slug"] == "brief"}
    assert {turn.parent for turn in turns} == of_agent.keys()
    for turn in turns:
        own = of_agent[turn.parent]
        assert (turn.kind, turn.trace, turn.ended, turn.error) == ("client", own.trace, own.ended, own.error)
        assert turn.attributes["gen_ai.operation.name"] == "invoke_agent"
        assert turn.attributes["gen_ai.provider.name"] == "python"
        assert turn.attributes["gen_ai.agent.name"] == "default"
    for span in collector.named("deliver desk"):
        row = rows[int(span.attributes["wakeful.run_id"])]
        assert (span.kind, span.began, span.error) == ("producer", _ms(row.ended_at), None)
        assert span.attributes["messaging.destination.name"] == "desk"


def _check_links(roots: dict[int, Received], rows: dict[int, RunView]) -> None:
    creator = min(run_id for run_id, row in rows.items() if row.slug == "brief")
    replays = [run_id for run_id, row in rows.items() if row.trigger == "replay"]
    assert len(replays) == 1
    replayed = rows[replays[0]].replay_of
    assert replayed is not None
    made = (roots[creator].trace, roots[creator].span)
    assert set(roots[replays[0]].links) == {(roots[replayed].trace, roots[replayed].span), made}
    later = [run_id for run_id, row in rows.items() if row.slug == "tidy" and run_id > replays[0]]
    assert later
    assert all(roots[run_id].links == [made] for run_id in later)
    assert not any(roots[run_id].links for run_id in rows if run_id < replays[0])


def _ms(at: Any) -> int:
    return int(at.timestamp() * 1000) if hasattr(at, "timestamp") else int(at)


async def test_attempts_of_several_nodes_are_in_one_trace(tmp_path: Path) -> None:
    """The first one fails on a node that is stopped, the second one succeeds on another: each says where it was."""
    tried: list[str] = []

    def answer(fire: Any, prompt: str) -> str:
        tried.append(fire.idempotency_key)
        if len(tried) == 1:
            raise RuntimeError("not yet")
        return "good morning"

    with collecting() as collector:
        for name, span in (("node-a", "1h"), ("node-b", "1m")):
            app = Wakeful(tmp_path / "wakeful.db", timezone="UTC", name=name)
            async with virtual(app, start=START if name == "node-a" else None, agents={"default": answer}) as clock:
                await app._change_otel(collector.url)
                if name == "node-a":
                    await app.add("brief", every("1h"), prompt="what is new?", retries=3)
                await clock.advance(span)
                assert await app._tracing.drained(PATIENCE)
    (own,), (first, second) = collector.named("run brief"), collector.named("attempt brief")
    assert tried == [tried[0]] * 2
    assert {span.trace for span in collector.spans} == {own.trace}
    assert (first.parent, second.parent) == (own.span, own.span)
    assert [span.resource["service.instance.id"] for span in (first, second, own)] == ["node-a", "node-b", "node-b"]
    assert (first.error, second.error, own.error) == ("RuntimeError: not yet", None, None)


# --- what is passed on -----------------------------------------------------------------------------------------------


def test_ids_are_the_same_wherever_they_are_derived() -> None:
    """From the key alone, so that every node, attempt and restart finds the same ones."""
    key, at = "0a1b-7-1774656000000", parse_instant("2026-03-28T00:00:00Z")
    own, attempt = run_of(key), attempt_of(key, 1, at)
    assert own == run_of(key)
    assert re.fullmatch("00-[0-9a-f]{32}-[0-9a-f]{16}-01", own.traceparent)
    family = [own, attempt, attempt_of(key, 2, at), attempt_of(key, 1, at + MINUTE), turn_of(attempt)]
    family.append(delivery_of(key, "0a1b-3.19d"))
    assert len({span.span_id for span in family}) == len(family)
    assert {span.trace_id for span in family} == {own.trace_id}
    assert run_of("0a1b-7-1774659600000").trace_id != own.trace_id
    assert SpanId.read(attempt.traceparent) == attempt


async def test_requests_and_messages_carry_the_span_they_belong_to(tmp_path: Path) -> None:
    """An http action that of its attempt, a webhook that of its delivery; nothing when runs are not traced."""
    async with receiving() as receiver:

        def channels(clock: Any, listener: Any) -> dict[str, Any]:
            return {"hook": WebhookChannel(f"{receiver.url}/hook", clock, listener, allow_private=True)}

        app = await app_of(tmp_path, channels=channels)
        with collecting() as collector:
            async with app:
                job = {"url": f"{receiver.url}/job", "method": "POST"}
                await app.add("ask", every("1h"), http=job, deliver={"channel": "hook"})
                await app.run_now("ask", wait=True)
                await _until(lambda: len(receiver.got) == 2)
                assert not any("traceparent" in got.headers for got in receiver.got)
                await app._change_otel(collector.url)
                traced = await app.run_now("ask", wait=True)
                await _until(lambda: len(collector.of_run(traced.run_id)) == 3)
                await app._change_otel(None)
                await app.run_now("ask", wait=True)
                await _until(lambda: len(receiver.got) == 6)
    of_traced = {span.name: span for span in collector.of_run(traced.run_id)}
    own, attempt, delivery = of_traced["run ask"], of_traced["attempt ask"], of_traced["deliver hook"]
    job_got, hook_got = receiver.got[2:4]
    assert job_got.headers["traceparent"] == f"00-{own.trace}-{attempt.span}-01"
    assert hook_got.headers["traceparent"] == f"00-{own.trace}-{delivery.span}-01"
    assert delivery.attributes["messaging.message.id"] == hook_got.headers["X-Wakeful-Delivery"]
    assert not any("traceparent" in got.headers for got in receiver.got[4:])


async def _until(holds: Any) -> None:
    async with asyncio.timeout(PATIENCE):
        while not holds():
            await asyncio.sleep(0.01)


def test_a_command_of_a_daemon_knows_its_span(tmp_path: Path) -> None:
    """`TRACEPARENT` is in its environment; failures are errors with their text; the settings are live."""
    home = tmp_path / "home"
    home.mkdir()
    script = "import os; print(os.environ.get('TRACEPARENT')); raise SystemExit(3)"
    job = {"schedule": {"type": "manual"}, "command": {"argv": [sys.executable, "-c", script]}}
    with (
        collecting() as collector,
        daemon(home, environ={"OTEL_RESOURCE_ATTRIBUTES": "deployment.environment=test"}) as one,
    ):
        assert ask(one.address, "/api/schedule/print", method="PUT", body=job)[0] == 201
        assert _output(one.address).strip() == "None"
        told = json.dumps([sys.executable, "-c", "import os; print(os.environ['TRACEPARENT'])"])
        teller = f'[agents.teller]\nadapter = "command"\nargv = {told}\n'
        (home / "wakeful.toml").write_text(f'[otel]\nendpoint = "{collector.url}"\n{teller}')
        _wait(lambda: _endpoint(one.address) == collector.url)
        printed = _output(one.address).strip()
        collector.wait(2, PATIENCE)
        (own,), (attempt,) = collector.named("run print"), collector.named("attempt print")
        assert printed == f"00-{attempt.trace}-{attempt.span}-01"
        assert attempt.parent == own.span
        assert attempt.error is not None
        assert "3" in attempt.error
        assert own.error == attempt.error
        assert own.attributes["wakeful.trigger"] == "manual"
        assert own.resource["deployment.environment"] == "test"
        assert _finding(one.address)["level"] == "ok"
        agent = {"schedule": {"type": "manual"}, "prompt": "hello", "agent": "teller"}
        assert ask(one.address, "/api/schedule/tell", method="PUT", body=agent)[0] == 201
        told = ask(one.address, "/api/schedule/tell/run?wait=true", method="POST")[1]["reply"]
        collector.wait(5, PATIENCE)
        (turn,), (tried,) = collector.named("invoke_agent teller"), collector.named("attempt tell")
        assert told.strip() == f"00-{tried.trace}-{turn.span}-01"
        assert turn.parent == tried.span


@pytest.mark.parametrize("is_named", [True, False])
def test_the_standard_variables_name_collector_and_service(tmp_path: Path, is_named: bool) -> None:
    """The endpoint where the settings have none; the service; and each turn says who provides its model."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "wakeful.toml").write_text('[agents.helper]\nadapter = "codex"\nprogram = "/bin/false"\n')
    with collecting() as collector:
        environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}
        environ |= {"OTEL_SERVICE_NAME": "nightly"} if is_named else {"OTEL_RESOURCE_ATTRIBUTES": "service.name=other"}
        with daemon(home, environ=environ) as one:
            for agent in ("default", "helper"):
                body = {"schedule": {"type": "manual"}, "prompt": "hello", "agent": agent}
                assert ask(one.address, f"/api/schedule/by-{agent}", method="PUT", body=body)[0] == 201
                ask(one.address, f"/api/schedule/by-{agent}/run?wait=true", method="POST")
            _wait(lambda: collector.named("invoke_agent default") and collector.named("invoke_agent helper"))
        assert {span.resource["service.name"] for span in collector.spans} == {"nightly" if is_named else "other"}
        providers = {
            span.name: span.attributes["gen_ai.provider.name"] for span in collector.spans if "invoke" in span.name
        }
        assert providers == {"invoke_agent default": "echo", "invoke_agent helper": "openai"}


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, None),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a:4318"}, "http://a:4318"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://b/x"}, "http://b/x"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a", "OTEL_SDK_DISABLED": "true"}, None),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a", "OTEL_TRACES_EXPORTER": "none"}, None),
    ],
)
def test_the_endpoint_in_the_environment(environ: dict[str, str], expected: str | None) -> None:
    """As OpenTelemetry specifies it."""
    assert endpoint_in(environ) == expected


def _output(address: str) -> str:
    run = ask(address, "/api/schedule/print/run?wait=true", method="POST")[1]
    return str(run["output"])


def _endpoint(address: str) -> Any:
    return ask(address, "/api/config")[1]["settings"]["otel"]["endpoint"]


def _finding(address: str) -> Any:
    return next((one for one in ask(address, "/healthz")[1]["findings"] if one["name"] == "tracing"), None)


def _wait(holds: Any) -> None:
    give_up = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < give_up
        time.sleep(0.02)


# --- when it does not work -------------------------------------------------------------------------------------------


async def test_a_collector_that_is_down_loses_spans_and_is_a_finding(tmp_path: Path) -> None:
    """Runs succeed on time all the same, and the address is named."""
    app = await app_of(tmp_path)
    async with virtual(app, start=START, on_command=lambda *_: "done") as clock:
        await app._change_otel(refusing_port())
        await app.add("tidy", every("1h"), command=["tidy", "up"])
        await clock.advance("3h")
        assert [run.outcome for run in await app.runs("tidy")] == ["succeeded"] * 3
        assert [(run.ended_at - run.planned_at).total_seconds() for run in await app.runs("tidy")] == [0, 0, 0]
        await _until(lambda: app._tracing.trouble() is not None)
        (finding,) = [one for one in (await app.system.health()).findings if one.name == "tracing"]
        assert (finding.level, app._tracing.lost >= 2) == ("warn", True)
        assert refusing_port() in finding.sentence
        assert "endpoint" in (finding.cure or "")


async def test_without_the_extra_the_cure_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """By `check`, at the start, and as a finding; runs are not affected."""
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk", None)
    file = tmp_path / "wakeful.toml"
    file.write_text('[otel]\nendpoint = "http://127.0.0.1:4318"\n')
    said = CliRunner().invoke(root, ["check", str(file), "-o", "json"])
    cure = 'pip install "wakeful[otel]"'
    assert [(one["field"], cure in one["message"]) for one in json.loads(said.stdout)["warnings"]] == [
        ("otel.endpoint", True)
    ]
    app = await app_of(tmp_path, otel="http://127.0.0.1:4318")
    async with app:
        assert any(cure in record.getMessage() for record in caplog.records)
        (finding,) = [one for one in (await app.system.health()).findings if one.name == "tracing"]
        assert (finding.level, cure in (finding.cure or "")) == ("warn", True)


def test_nothing_is_imported_when_it_is_off(tmp_path: Path) -> None:
    """Neither OpenTelemetry nor what it needs, not even after a run."""
    program = f"""
import asyncio, sys
from wakeful import Wakeful, every

async def main():
    async with Wakeful({str(tmp_path / "wakeful.db")!r}) as app:
        await app.add("say", every("1h"), command=["true"])
        run = await app.run_now("say", wait=True)
        assert run.outcome == "succeeded", run
        assert not app._bus.fan_out.is_heard
    print([name for name in sys.modules if name.startswith(("opentelemetry", "google.protobuf", "requests"))])

asyncio.run(main())
"""
    said = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert (said.stdout.strip(), said.stderr) == ("[]", "")


async def test_secrets_in_errors_are_masked(tmp_path: Path) -> None:
    """What is masked everywhere else is masked in spans."""
    app = await app_of(tmp_path, host=Host(redact=lambda text: text.replace("hunter2", "***")))

    def fails(fire: Any, prompt: str) -> str:
        raise RuntimeError("wrong password hunter2")

    with collecting() as collector:
        async with virtual(app, start=START, agents={"default": fails}) as clock:
            await app._change_otel(collector.url)
            await app.add("brief", every("1h"), prompt="hello", retries=0)
            await clock.advance("1h")
            assert await app._tracing.drained(PATIENCE)
    errors = [span.error for span in collector.spans]
    assert errors == ["RuntimeError: wrong password ***"] * 3
