"""Conformance: what agents own, and what they proposed."""

from conformance.rows import NOW, MakeStore, a_run, put_runs
from wakeful.core.self_scheduling.proposals import OwnedKind, Ownership, Proposal
from wakeful.features.schedules.proposal_rows import AgentProposals
from wakeful.ports.ownerships import Ownerships
from wakeful.ports.store import NewSchedule, Tx


def _proposal(number: int, **more: object) -> Proposal:
    row = Proposal(
        proposal_id=f"p{number:08x}",
        owner="coder",
        slug=f"coder.job-{number}",
        kind="schedule",
        definition='{"slug":"é \N{ALARM CLOCK}"}',
        schedule_id=None,
        base_version=None,
        note=None,
        run_id=None,
        run_slug=None,
        depth=1,
        status="pending",
        asked_at=NOW + number,
        expires_at=NOW + 1_000,
        decided_at=None,
        decided_by=None,
        code_digest=None,
    )
    return row._replace(**more)  # type: ignore[arg-type]


class TestSelfScheduling:
    """Ownerships and proposals."""

    async def test_an_ownership_reads_back_and_counts_while_its_schedule_exists(self, make_store: MakeStore) -> None:
        """A removed schedule no longer counts among those of its agent."""
        store = await make_store()

        def put(tx: Tx) -> list[int]:
            tx[Ownerships].lock_owner("coder")
            rows = [NewSchedule(f"coder.{name}", "{}", 0, NOW) for name in ("a", "b", "c")]
            ids = [added for added in tx.schedules.add_many(rows) if added is not None]
            for place, schedule_id in enumerate(ids):
                kind: OwnedKind = "wake" if place == 1 else "schedule"
                tx[Ownerships].put(Ownership(schedule_id, "coder", kind, 7, "digest", place, "approved", NOW + place))
            (removed,) = tx.schedules.by_ids([ids[2]]).values()
            tx.schedules.save_many([removed._replace(deleted_at=NOW)])
            return ids

        ids = await store.write(put)
        found = await store.read(lambda tx: tx[Ownerships].among([*ids, 999]))
        assert found[ids[0]] == Ownership(ids[0], "coder", "schedule", 7, "digest", 0, "approved", NOW)
        assert set(found) == set(ids)
        assert [row.schedule_id for row in await store.read(lambda tx: tx[Ownerships].of_owner("coder"))] == ids[:2]
        assert await store.read(lambda tx: tx[Ownerships].of_owner("other")) == []
        made = await store.read(lambda tx: tx[Ownerships].made_since("coder", NOW))
        assert [row.schedule_id for row in made] == ids[1:]  # the removed one included
        assert await store.read(lambda tx: tx[Ownerships].made_since("coder", NOW + 2)) == []
        began = ((1, 0, 1), (2, 0, 2), (3, 2, 1), (4, 2, 0))  # the last one waits for its first attempt
        rows = [a_run(number, schedule_id=ids[place], occurrence=number, attempt=n) for number, place, n in began]
        await store.write(lambda tx: put_runs(tx, *rows))
        assert await store.read(lambda tx: tx[Ownerships].last_runs()) == [2, 3]  # none of the second one

    async def test_proposals_are_pending_until_decided_or_expired(self, make_store: MakeStore) -> None:
        """In slug order, of one agent or of all; what was decided stays, until it is pruned."""
        store = await make_store()
        first, second = _proposal(1, note="é", run_id=7, run_slug="digest", code_digest="x"), _proposal(2)
        other = _proposal(3, owner="other", slug="other.job", kind="wake")

        def put(tx: Tx) -> None:
            for row in (second, first, other):
                tx[AgentProposals].add(row)

        await store.write(put)
        assert await store.read(lambda tx: tx[AgentProposals].pending(now=NOW)) == [first, second, other]
        assert await store.read(lambda tx: tx[AgentProposals].pending(now=NOW, owner="other")) == [other]
        assert await store.read(lambda tx: tx[AgentProposals].pending(now=NOW + 1_000)) == []
        assert await store.write(lambda tx: tx[AgentProposals].get(first.proposal_id)) == first
        assert await store.write(lambda tx: tx[AgentProposals].get("p0")) is None
        decided = first._replace(status="approved", decided_at=NOW, decided_by="cli", code_digest=None)
        await store.write(lambda tx: tx[AgentProposals].save_many([decided]))
        assert await store.read(lambda tx: tx[AgentProposals].pending(now=NOW, owner="coder")) == [second]
        assert await store.read(lambda tx: tx[AgentProposals].of_slug(first.slug, limit=5)) == [decided]
        assert await store.read(lambda tx: tx[AgentProposals].rejected("coder", since=NOW - 1)) == []
        rejected = decided._replace(status="rejected")
        await store.write(lambda tx: tx[AgentProposals].save_many([rejected]))
        assert await store.read(lambda tx: tx[AgentProposals].rejected("coder", since=NOW - 1)) == [rejected]
        assert await store.read(lambda tx: tx[AgentProposals].rejected("coder", since=NOW)) == []
        assert await store.read(lambda tx: tx[AgentProposals].asked_since("coder", NOW)) == 2
        assert await store.read(lambda tx: tx[AgentProposals].wakes_pending("other", since=NOW)) == 1
        assert await store.write(lambda tx: tx[AgentProposals].forget(before=NOW + 2)) == 1
        assert await store.read(lambda tx: tx[AgentProposals].of_slug(first.slug, limit=5)) == []
