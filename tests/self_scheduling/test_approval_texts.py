"""What a person reads before they approve: every field, and nothing hidden."""

from pathlib import Path
from typing import Any

import pytest

from self_scheduling.owner import own
from wakeful import Invalid, Wakeful
from wakeful.app.owned_writing import put_owned
from wakeful.cli.approvals import _show
from wakeful.cli.health import ITSELF
from wakeful.core.schedule.definition_json import encode_definition
from wakeful.core.self_scheduling.limits import SelfSchedulingTerms
from wakeful.core.self_scheduling.proposals import Proposal, code_digest
from wakeful.features.schedules import approvals
from wakeful.features.schedules.approval_texts import details, visible
from wakeful.features.schedules.approval_views import PROPOSAL
from wakeful.features.schedules.owned import Actor
from wakeful.features.schedules.proposal_rows import AgentProposals
from wakeful.features.schedules.rules import Terms
from wakeful.ports.store import Tx
from wakeful.testing import virtual

START = "2026-11-16T12:00Z"
CODER = Actor("coder")
WATCH = {"schedule": "every 2h", "prompt": "Look at the build"}


def make(tmp_path: Path, **terms: Any) -> Wakeful:
    app = Wakeful(tmp_path / "wakeful.db", timezone="UTC", self_scheduling=SelfSchedulingTerms(**terms))
    app.agent("coder")(lambda prompt: "done")
    return app


async def chat_text(app: Wakeful) -> str:
    """What an approver is sent of the only proposal."""
    now = app._moment().now

    def look(tx: Tx) -> str:
        (proposal,) = tx[AgentProposals].pending(now=now)
        return "\n".join(details(proposal, approvals.base_of(tx, proposal), terms=Terms(), now=now))

    return await app._store.read(look)


async def test_every_field_of_a_new_schedule_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    app = make(tmp_path)
    async with virtual(app, start=START):
        options = {"timeout": "3h", "expiresAt": "2026-11-20T00:00:00Z", "sessionConfig": {"persistSession": False}}
        await own(app, CODER).put("watch", {**WATCH, **options})
        (asked,) = (await app.people.proposals()).proposals
        capsys.readouterr()
        _show(PROPOSAL.write(asked))
        for shown in (capsys.readouterr().out, await chat_text(app)):
            assert "Look at the build" in shown
            assert 'timeout: "3h"' in shown
            assert 'expiresAt: "2026-11-20T00:00:00' in shown
            assert 'sessionConfig: {"persistSession": false}' in shown
            assert 'agent: "coder"' in shown


async def test_a_change_is_shown_as_old_and_new(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    app = make(tmp_path)
    async with virtual(app, start=START):
        await own(app, CODER).put("watch", {**WATCH, "timeout": "3h"})
        await app.people.decide((await app.people.proposals()).proposals[0].proposal_id, "approve")
        changed = {"schedule": "every 2h", "prompt": "Look twice", "timeout": "4h"}
        await own(app, CODER).put("watch", {**changed, "sessionConfig": {"persistSession": False}})
        (asked,) = (await app.people.proposals()).proposals
        fields = {one.field: (one.old, one.new) for one in asked.changes}
        assert fields == {
            "prompt": ("Look at the build", "Look twice"),
            "timeout": ("3h", "4h"),
            "sessionConfig": (None, {"persistSession": False}),
        }
        capsys.readouterr()
        _show(PROPOSAL.write(asked))
        for shown in (capsys.readouterr().out, await chat_text(app)):
            assert 'timeout: "3h" → "4h"' in shown
            assert 'sessionConfig: (default) → {"persistSession": false}' in shown
            assert "Look at the build" in shown and "Look twice" in shown
        decided = await app.people.decide(asked.proposal_id, "approve")
        assert decided.proposal.changes == asked.changes


@pytest.mark.parametrize("option", ["system", "model", "maxTokens", "tools", "anything"])
async def test_an_agent_cannot_give_itself_more_power(tmp_path: Path, option: str) -> None:
    app = make(tmp_path, approval="never")
    async with virtual(app, start=START):
        session = {"persistSession": False, option: "x"}
        with pytest.raises(Invalid, match="sessionConfig: an agent may set persistSession only"):
            await own(app, CODER).put("watch", {**WATCH, "sessionConfig": session})


async def test_a_code_is_bound_to_everything_that_was_shown(tmp_path: Path) -> None:
    app = make(tmp_path)
    async with virtual(app, start=START):
        await put_owned(app, CODER, "coder.watch", WATCH, note="it breaks often")
        now = app._moment().now
        (proposal,) = await app._store.read(lambda tx: tx[AgentProposals].pending(now=now))
        definition = (await app.get("coder.watch")).definition
        assert definition is not None
        text = encode_definition(definition).replace("build", "fortune")
        others: list[Proposal] = [
            proposal._replace(definition=text),
            proposal._replace(base_version=2, schedule_id=1),
            proposal._replace(kind="wake"),
            proposal._replace(note="other"),
        ]
        digests = {code_digest("AAAAAAAA", one) for one in (proposal, *others)}
        assert len(digests) == 5
        assert code_digest("aaaaaaaa", proposal._replace(code_digest="x")) in digests


@pytest.mark.parametrize("hidden", [*"\ufe0f\U000e0100\u180b\u3164\uffa0\u115f\u1160\u2800\u034f\u17b4\u00a0\u3000"])
def test_what_shows_as_nothing_is_written_out(hidden: str) -> None:
    assert visible(f"rm{hidden} file") == f"│ rm\\u{{{ord(hidden):x}}} file"
    assert visible("Grüße, 世界 e\u0301 🙂") == "│ Grüße, 世界 e\u0301 🙂"


def test_doctor_reports_proposals() -> None:
    """As everything that it does not check itself."""
    assert "approvals" not in ITSELF
