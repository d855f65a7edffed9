"""Workflows over REST, with handlers behind real ports: what they are asked, and whatever they may answer."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from edges.http.kit import Client, served
from sampling import sampled
from wakeful import Wakeful
from wakeful.app.options import Host
from wakeful.ports.exchange import ExchangeStep, RequestContext
from workflows.handlers import Handler, flow, handling, says


@pytest.fixture
async def handler() -> AsyncIterator[Handler]:
    """A handler."""
    async with handling() as one:
        yield one


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    """A server over a fresh store."""
    async with served(tmp_path) as one:
        yield one


async def until(client: Client, is_so: Callable[[Any], bool], name: str = "inbox") -> Any:
    """The workflow, as soon as it stands like this."""
    for asked in range(500):
        view = (await client.get(f"/api/workflows/{name}")).body
        if is_so(view):
            return view
        await asyncio.sleep(min(0.01 * (1 + asked), 0.2))
    raise AssertionError(view)


def is_idle(view: Any) -> bool:
    return view["consumers"]["digest"]["dirty"] is False and view["openRun"] is None


def consumed(n: int) -> Callable[[Any], bool]:
    return lambda view: view["topics"]["mail"]["consumed"] == n and view["openRun"] is None


async def test_a_workflow_from_deploy_to_delete(client: Client, handler: Handler) -> None:
    """Every route of it, once."""
    created = await client.ask("PUT", "/api/workflows/inbox", flow(handler.address))
    assert (created.status, created.headers["Location"]) == (201, "/api/workflows/inbox")
    assert handler.phases(is_dry=True) == ["prepare"]
    again = await client.ask("PUT", "/api/workflows/inbox", flow(handler.address))
    assert (again.status, again.body["version"], again.headers["ETag"]) == (200, 1, created.headers["ETag"])
    handler.answers["produce"] = {"messages": [{"topic": "mail", "id": "a", "payload": {"x": 1}}], "state": {"n": 7}}
    await until(client, is_idle)
    started = await client.post("/api/workflows/inbox/run")
    assert started.status == 202
    view = await until(client, consumed(1))
    assert view["producers"]["poll"]["state"] == {"n": 7}
    assert view["topics"]["mail"] == {"pending": 0, "reserved": 0, "consumed": 1, "skipped": 0}
    asked = {one["phase"]: one for one in handler.asked if not one["dryRun"] and one.get("messages") != {"mail": []}}
    assert asked["produce"]["workflow"] == "inbox"
    assert asked["produce"]["handler"] == "poll"
    assert {"runId", "state"} <= asked["produce"].keys()
    first = next(one for one in handler.asked if one["phase"] == "prepare" and one["messages"]["mail"])
    assert first["messages"] == {"mail": [{"id": "a", "payload": {"x": 1}, "attempt": 1}]}
    mutate = next(one for one in handler.asked if one["phase"] == "mutate")
    assert mutate["prepared"]["data"] == {"n": 1}
    assert {"outcome": "applied"} in [one["mutation"] for one in handler.asked if one["phase"] == "next"]
    keys = [headers.get("idempotency-key") for headers in handler.headers]
    assert all(keys) and handler.headers[-1]["x-wakeful-run"] == handler.asked[-1]["runId"]
    published = await client.post("/api/workflows/inbox/topics/mail/messages", {"id": "b", "payload": 2})
    assert (published.status, published.body["result"]) == (201, "published")
    await until(client, consumed(2))
    again = await client.post("/api/workflows/inbox/topics/mail/messages", {"id": "b", "payload": 3})
    assert (again.status, again.body["result"]) == (200, "duplicate")
    anonymous = await client.post("/api/workflows/inbox/topics/mail/messages", {"payload": 4})
    assert anonymous.status == 201 and anonymous.body["id"]
    await until(client, consumed(3))
    listed = await client.get("/api/workflows/inbox/topics/mail/messages")
    assert [one["status"] for one in listed.body["messages"]] == ["consumed"] * 3
    page = await client.get("/api/workflows/inbox/topics/mail/messages?limit=1")
    assert page.body["next"] == "1"
    # The first look, then the one by hand; messages published while that was open were part of it.
    sessions = (await client.get("/api/workflows/inbox/sessions?limit=1")).body
    assert len(sessions["sessions"]) == 1 and sessions["next"]
    everything = (await client.get("/api/workflows/inbox/sessions")).body["sessions"]
    assert "manual" in [one["kind"] for one in everything]
    paused = await client.post("/api/workflows/inbox/pause")
    assert (paused.status, paused.body["status"]) == (200, "paused")
    assert (await client.post("/api/workflows/inbox/run")).status == 409
    assert (await client.post("/api/workflows/inbox/resume")).body["status"] == "active"
    assert [one["id"] for one in (await client.get("/api/workflows")).body["workflows"]] == ["inbox"]
    assert (await client.ask("DELETE", "/api/workflows/inbox")).status == 204
    assert (await client.get("/api/workflows/inbox")).status == 404
    runs = (await client.get("/api/runs")).body["runs"]
    assert {run["slug"] for run in runs} == {"workflow:inbox"}


class Ear:
    """Hears of requests to others."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str | None, str, dict[str, Any]]] = []

    def __call__(self, about: RequestContext) -> ExchangeStep:
        return lambda phase, details: self.heard.append((about.action, about.slug, phase, dict(details)))


async def test_every_request_to_a_handler_is_heard(tmp_path: Path, handler: Handler) -> None:
    """By whoever listens to requests that leave: the daemon's log does."""
    ear = Ear()
    async with Wakeful(tmp_path / "wakeful.db", timezone="UTC", host=Host(listener=lambda: ear)) as app:
        await app.workflows.put("inbox", flow(handler.address))
    assert ("workflow-handler", "workflow:inbox", "request") in [one[:3] for one in ear.heard]
    assert ("workflow-handler", "workflow:inbox", "response") in [one[:3] for one in ear.heard]


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"consumers": {}}, "producers.poll.publishes", "no consumer reads 'mail'"),
        ({"producer": {"schedule": {"type": "cron", "expression": "61 * * * *"}}}, "schedule", "61"),
        ({"producer": {"schedule": None}}, "producers.poll.schedule", "missing"),
        ({"producer": {"handler": {}}}, "producers.poll.handler", "exactly one of http, command"),
        ({"producer": {"handler": {"http": {"url": "ftp://x"}}}}, "handler.http.url", "not an http"),
        ({"producer": {"handler": {"command": {"argv": []}}}}, "handler.command.argv", "list of strings"),
        ({"consumer": {"subscribe": []}}, "consumers.digest.subscribe", "is empty"),
        ({"consumer": {"subscribe": ["bad name"]}}, "consumers.digest.subscribe", "not a valid topic name"),
        ({"consumer": {"mutate": "no"}}, "consumers.digest.mutate", "true or false"),
        ({"consumer": {"timeout": "soon"}}, "consumers.digest.timeout", "not a duration"),
        ({"consumer": {"colour": 1}}, "consumers.digest.colour", "unknown field"),
        ({"status": "running"}, "status", "not one of draft"),
        ({"id": "other"}, "id", "does not match"),
    ],
)
async def test_a_definition_that_cannot_work_is_refused_whole(
    client: Client, handler: Handler, change: dict[str, Any], field: str, words: str
) -> None:
    """Naming field and cure; the version that runs stays."""
    assert (await client.ask("PUT", "/api/workflows/inbox", flow(handler.address))).status == 201
    refused = await client.ask("PUT", "/api/workflows/inbox", flow(handler.address, **change))
    assert refused.status == 400
    found = [one for one in refused.body["errors"] if field in one["field"]]
    assert found, refused.body
    assert words in found[0]["message"]
    assert (await client.get("/api/workflows/inbox")).body["version"] == 1


async def test_a_name_is_a_producers_or_a_consumers(client: Client, handler: Handler) -> None:
    """One that is both is refused."""
    one = flow(handler.address)
    one["consumers"]["poll"] = {**one["consumers"]["digest"], "subscribe": ["more"]}
    refused = await client.ask("PUT", "/api/workflows/inbox", one)
    assert refused.status == 400
    assert "is also the name of a producer" in refused.body["error"]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ([], "not a JSON object"),
        ({}, "reservations: missing"),
        ({"reservations": "all"}, "is not a list"),
        ({"reservations": [{"topic": "other", "ids": []}]}, "is not subscribed to"),
        ({"reservations": [], "wakeAt": 5}, "is not a string"),
        ({"reservations": [], "wakeAt": "tomorrow"}, "not a date and time"),
        ({"reservations": [], "wakeAt": "2026-01-30T09:00:00"}, "has no offset"),
        ({"reservations": [], "messages": [1]}, "which this phase does not allow"),
        ({"reservations": [{"topic": "mail", "ids": ["x"]}]}, "although it got none"),
        (says(500, "boom"), "HTTP 500"),
        (says(200, "not json"), "not JSON"),
    ],
)
async def test_deploying_tries_each_prepare_and_refuses_a_wrong_shape(
    client: Client, handler: Handler, answer: Any, words: str
) -> None:
    """Even with force: that is only for what cannot be reached."""
    handler.answers["prepare"] = answer
    for query in ("", "?force=true"):
        refused = await client.ask("PUT", f"/api/workflows/inbox{query}", flow(handler.address))
        assert refused.status == 400
        (error,) = refused.body["errors"]
        assert error["field"] == "consumers.digest.handler"
        assert words in error["message"]
    assert (await client.get("/api/workflows/inbox")).status == 404


async def test_force_deploys_although_a_handler_cannot_be_reached(client: Client, handler: Handler) -> None:
    """And a draft is not tried out before it is made active."""
    gone = flow("http://127.0.0.1:1")
    refused = await client.ask("PUT", "/api/workflows/inbox", gone)
    assert refused.status == 400
    assert "deploy with force" in refused.body["error"]
    assert (await client.ask("PUT", "/api/workflows/inbox?force=true", gone)).status == 201
    assert (await client.ask("PUT", "/api/workflows/draft", {**gone, "status": "draft"})).status == 201
    assert (await client.post("/api/workflows/draft/resume")).status == 400
    assert (await client.ask("PATCH", "/api/workflows/draft", {"status": "active"})).status == 400
    assert (await client.get("/api/workflows/draft")).body["status"] == "draft"
    assert (await client.post("/api/workflows/draft/resume?force=true")).body["status"] == "active"


async def test_a_dry_run_tries_everything_and_writes_nothing(client: Client, handler: Handler) -> None:
    """204, or why not."""
    assert (await client.ask("PUT", "/api/workflows/inbox?dryRun=true", flow(handler.address))).status == 204
    assert handler.phases(is_dry=True) == ["prepare"]
    assert (await client.get("/api/workflows/inbox")).status == 404


async def test_a_patch_merges_and_deploys(client: Client, handler: Handler) -> None:
    """Status alone makes no version; If-Match guards both."""
    created = await client.ask("PUT", "/api/workflows/inbox", flow(handler.address))
    tag = created.headers["ETag"]
    paused = await client.ask("PATCH", "/api/workflows/inbox", {"status": "paused"})
    assert (paused.body["status"], paused.body["version"]) == ("paused", 1)
    changed = {"consumers": {"digest": {"timeout": "30s"}}}
    patched = await client.ask("PATCH", "/api/workflows/inbox", changed, headers={"If-Match": tag})
    assert (patched.status, patched.body["version"], patched.body["status"]) == (200, 2, "paused")
    assert patched.body["consumers"]["digest"]["timeout"] == "30s"
    stale = await client.ask("PATCH", "/api/workflows/inbox", {"status": "active"}, headers={"If-Match": tag})
    assert stale.status == 412
    assert (await client.ask("DELETE", "/api/workflows/inbox", headers={"If-Match": tag})).status == 412
    read_back = {**patched.body, "status": "active"}
    assert (await client.ask("PUT", "/api/workflows/inbox", read_back)).body["version"] == 2
    assert (await client.ask("PATCH", "/api/workflows/none", {})).status == 404


async def test_publishing_where_nobody_reads_is_not_found(client: Client, handler: Handler) -> None:
    """And what is no message is refused."""
    await client.ask("PUT", "/api/workflows/inbox", flow(handler.address))
    where = "/api/workflows/inbox/topics"
    missing = await client.post(f"{where}/bin/messages", {"id": "a", "payload": 1})
    assert (missing.status, "its topics are mail" in missing.body["error"]) == (404, True)
    assert (await client.post(f"{where}/mail/messages", {"id": 5})).status == 400
    assert (await client.post(f"{where}/mail/messages", {"id": "x" * 501})).status == 400
    assert (await client.post(f"{where}/mail/messages", {"colour": 1})).status == 400
    assert (await client.get(f"{where}/bin/messages")).status == 404


Trouble = tuple[str, Any, str]
TROUBLES: list[Trouble] = [
    ("garbage", says(200, "<html>"), "not JSON"),
    ("a number", 5, "not a JSON object"),
    ("10 MB", lambda _: {"data": "x" * 10_000_000}, "longer than"),
    ("a 404", says(404, "who?"), "HTTP 404"),
    ("a redirect", says(302, Location="/y"), "HTTP 302"),
]


@pytest.mark.parametrize(
    ("name", "answer", "words", "phase"),
    sampled(
        [
            pytest.param(*one, phase, id=f"{phase}, {one[0]}")
            for one in TROUBLES
            for phase in ("produce", "prepare", "next")
        ],
        every=4,
    ),
)
async def test_whatever_a_handler_answers_is_a_clear_error_on_that_run_and_disturbs_nothing_else(
    client: Client, handler: Handler, phase: str, name: str, answer: Any, words: str
) -> None:
    """The workflow stops with its error; its neighbour goes on; resuming it goes on where it was."""
    await client.ask("PUT", "/api/workflows/inbox", flow(handler.address))
    await client.ask("PUT", "/api/workflows/other", flow(handler.address))
    handler.answers["produce"] = {"messages": [{"topic": "mail", "id": "a", "payload": 1}]}
    await until(client, is_idle)
    await until(client, is_idle, "other")
    handler.script[phase] = [answer]
    await client.post("/api/workflows/inbox/run")
    view = await until(client, lambda view: view["error"] is not None)
    assert words in view["error"], view["error"]
    assert phase in view["error"]
    handler.script.clear()
    await client.post("/api/workflows/other/topics/mail/messages", {"id": "z", "payload": 1})
    await until(client, consumed(1), "other")
    assert (await client.post("/api/workflows/inbox/resume")).status == 200
    if phase == "produce":
        assert (await client.post("/api/workflows/inbox/run")).status == 202
    await until(client, consumed(1))


async def test_publishing_to_a_foreign_topic_is_an_error_of_that_run(client: Client, handler: Handler) -> None:
    """Nothing of what it published is kept, not even what was allowed."""
    await client.ask("PUT", "/api/workflows/inbox", flow(handler.address))
    foreign = [{"topic": "mail", "id": "a", "payload": 1}, {"topic": "foreign", "id": "b", "payload": 1}]
    handler.script["produce"] = [{"messages": foreign}]
    await until(client, is_idle)
    await client.post("/api/workflows/inbox/run")
    view = await until(client, lambda view: view["error"] is not None)
    assert "'foreign' is not one of its declared topics (mail)" in view["error"]
    assert view["topics"]["mail"]["pending"] == 0


async def test_a_handler_that_never_answers_is_ended_at_its_time(client: Client, handler: Handler) -> None:
    """In prepare it is tried again; in mutate nobody knows, and a person says."""

    async def never(_: Any = None) -> None:
        await asyncio.sleep(60)

    await client.ask("PUT", "/api/workflows/inbox", flow(handler.address, consumer={"timeout": "5s"}))
    await until(client, is_idle)
    handler.script["prepare"] = [lambda _: never()]
    await client.post("/api/workflows/inbox/topics/mail/messages", {"id": "a", "payload": 1})
    view = await until(client, lambda view: view["consumers"]["digest"]["heldUntil"] is not None)
    assert "no answer within 5 s" in view["consumers"]["digest"]["lastError"]
    assert (view["openRun"], view["error"]) == (None, None)
    (run,) = (await client.ask("GET", "/api/workflows/inbox/runs?outcome=failed")).body["runs"]
    assert (run["outcome"], run["reason"]) == ("failed", "transient")


UNCERTAIN: list[tuple[str, Any, str]] = [
    ("broken connection", "break", "closed the connection"),
    ("503", says(503, "later"), "HTTP 503"),
    ("500", says(500), "HTTP 500"),
    ("silence", lambda _: asyncio.sleep(60), "no answer within"),
]


@pytest.mark.parametrize(
    ("name", "answer", "words", "choice"),
    sampled(((*one, choice) for one in UNCERTAIN for choice in ("retry", "didNotHappen", "skip")), every=4),
)
async def test_an_uncertain_mutate_is_resolved_over_rest(
    client: Client, handler: Handler, name: str, answer: Any, words: str, choice: str
) -> None:
    """It is asked once, and once more only on a person's word."""
    await client.ask("PUT", "/api/workflows/inbox", flow(handler.address, consumer={"timeout": "5s"}))
    handler.script["mutate"] = [answer]
    await client.post("/api/workflows/inbox/topics/mail/messages", {"id": "a", "payload": 1})
    view = await until(client, lambda view: view["error"] is not None)
    assert words in view["error"]
    assert view["openRun"]["awaits"] == "uncertain"
    run_id = view["openRun"]["runId"]
    assert handler.phases().count("mutate") == 1
    assert (await client.post("/api/workflows/inbox/resume")).status == 409
    assert (await client.post(f"/api/workflows/inbox/runs/{run_id}/resolve", {"choice": "perhaps"})).status == 400
    assert (await client.post(f"/api/workflows/inbox/runs/{run_id}/resolve")).status == 400
    assert (await client.post("/api/workflows/inbox/runs/99999/resolve", {"choice": choice})).status == 404
    resolved = await client.post(f"/api/workflows/inbox/runs/{run_id}/resolve", {"choice": choice})
    assert (resolved.status, resolved.body["error"]) == (200, None)
    if choice == "skip":
        await until(client, lambda view: view["topics"]["mail"]["skipped"] == 1 and view["openRun"] is None)
        assert handler.phases().count("mutate") == 1
    else:
        await until(client, consumed(1))
        assert handler.phases().count("mutate") == 2
    assert (await client.post(f"/api/workflows/inbox/runs/{run_id}/resolve", {"choice": choice})).status == 409


@pytest.mark.parametrize(
    ("answer", "is_stopped"), [(says(429, **{"Retry-After": "1"}), False), (says(400, "bad"), True)]
)
async def test_a_mutate_that_says_it_did_nothing_is_believed(
    client: Client, handler: Handler, answer: Any, is_stopped: bool
) -> None:
    """429 is tried again, a 4xx stops the workflow; in both cases the message is pending again."""
    await client.ask("PUT", "/api/workflows/inbox", flow(handler.address))
    handler.script["mutate"] = [answer]
    await client.post("/api/workflows/inbox/topics/mail/messages", {"id": "a", "payload": 1})
    view = await until(client, lambda view: view["error"] or view["consumers"]["digest"]["lastError"])
    assert handler.phases().count("mutate") == 1
    assert view["topics"]["mail"]["pending"] == 1
    if is_stopped:
        assert "HTTP 400" in view["error"]
        await client.post("/api/workflows/inbox/resume")
        await until(client, consumed(1))
    else:
        assert (view["error"], view["openRun"]) == (None, None)
        assert "HTTP 429" in view["consumers"]["digest"]["lastError"]
        assert view["consumers"]["digest"]["heldUntil"] is not None


async def test_a_producer_that_is_too_often_is_slowed_down_with_a_warning(client: Client, handler: Handler) -> None:
    """The answer says so, of a PUT and of a PATCH; one that is within the limit has no warning."""
    hasty = flow(handler.address)
    hasty["producers"]["poll"]["schedule"] = {"type": "every", "every": "2s"}
    made = await client.ask("PUT", "/api/workflows/inbox", hasty)
    assert made.status == 201
    assert made.headers["Wakeful-Warning"] == "producers.poll.schedule.every: 2s is below the minimum; 10s is used"
    assert made.body["producers"]["poll"]["schedule"]["every"] == "10s"
    change = {"producers": {"poll": {"schedule": {"type": "every", "every": "3s"}}}}
    patched = await client.ask("PATCH", "/api/workflows/inbox", change)
    assert "3s is below the minimum" in patched.headers["Wakeful-Warning"]
    change["producers"]["poll"]["schedule"]["every"] = "30s"
    assert "Wakeful-Warning" not in (await client.ask("PATCH", "/api/workflows/inbox", change)).headers


async def test_skipped_messages_are_replayed(client: Client, handler: Handler) -> None:
    """Counted with `dryRun`, then for real; what is wrong with the request is refused."""
    await client.ask("PUT", "/api/workflows/inbox", flow(handler.address))
    await until(client, is_idle)
    handler.answers["prepare"] = {"reservations": []}
    where = "/api/workflows/inbox/topics/mail"
    await client.post(f"{where}/messages", {"id": "a", "payload": 1})
    await until(client, is_idle)
    assert (await client.post(f"{where}/skip", {"ids": ["a"]})).body == {"topic": "mail", "skipped": 1}
    dry = await client.post(f"{where}/replay?dryRun=true", {})
    assert (dry.status, dry.body) == (202, {"topic": "mail", "messages": 1})
    assert (await client.get("/api/workflows/inbox")).body["topics"]["mail"]["skipped"] == 1
    assert (await client.post(f"{where}/replay", {"ids": []})).status == 400
    assert (await client.post(f"{where}/replay", {"ids": ["b"]})).status == 404
    assert (await client.post("/api/workflows/inbox/topics/none/replay", {})).status == 404
    done = await client.post(f"{where}/replay", {"ids": ["a"], "consumer": "digest"})
    assert (done.status, done.body) == (202, {"topic": "mail", "messages": 1})
    view = (await client.get("/api/workflows/inbox")).body
    assert view["topics"]["mail"]["skipped"] == 0
    assert (await client.post(f"{where}/replay", {"ids": ["a"]})).status == 409


async def test_a_stopped_workflow_says_so_everywhere(client: Client, handler: Handler) -> None:
    """Its status is `stopped`; written back as it was read, it stays as it is. Its runs are where `why` is."""
    assert (await client.ask("PUT", "/api/workflows/inbox", flow(handler.address))).status == 201
    await until(client, is_idle)
    handler.answers["produce"] = {"messages": "none"}
    assert (await client.post("/api/workflows/inbox/run")).status == 202
    stopped = await until(client, lambda view: view["error"] is not None)
    assert stopped["status"] == "stopped"
    (listed,) = (await client.get("/api/workflows")).body["workflows"]
    assert listed["status"] == "stopped"
    written = {name: stopped[name] for name in ("id", "status")} | flow(handler.address)
    again = await client.ask("PUT", "/api/workflows/inbox", {**written, "status": "stopped"})
    assert (again.status, again.body["status"]) == (200, "stopped")
    assert (await client.ask("PATCH", "/api/workflows/inbox", {"status": "stopped"})).body["status"] == "stopped"
    assert "stopped" in (await client.get("/api/schedule/workflow:inbox/why")).body["sentence"]
    runs = (await client.get("/api/schedule/workflow:inbox/runs")).body["runs"]
    assert (runs[0]["slug"], runs[0]["outcome"]) == ("workflow:inbox", "failed")
    assert (await client.get("/api/schedule/workflow:other/runs")).status == 404
    handler.answers["produce"] = {"messages": []}
    assert (await client.post("/api/workflows/inbox/resume")).body["status"] == "active"
