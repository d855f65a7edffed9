"""Charges, budgets and merged runs, in any store."""

from conformance.rows import NOW, MakeStore
from wakeful.core.money.budgets import Limit, Reservation, Window
from wakeful.core.money.charges import Charge, opened, settled
from wakeful.core.money.spending import Spending
from wakeful.engine.merged_runs import MergedRun, MergedRuns
from wakeful.features.money.budget_rows import Brake, Brakes, BudgetPeriods, Reservations, SetLimit, SetLimits
from wakeful.ports.charges import Charges, DayOf, SpendingTotals
from wakeful.ports.store import Tx

DAY = Window(NOW - 1_000, NOW + 1_000)
LIMIT = Limit("all", "usd", "day", 100)


def _charge(
    run_id: int, *, cost: float | None, at: int = NOW, agent: str | None = "coder", owner_id: int = 7
) -> Charge:
    row = opened(run_id, 1, owner_id, agent, at)
    used = None if cost is None else {"total": 10, "cost": cost, "model": "m"}
    return settled(row, used, at)._replace(held_cost=5)  # type: ignore[arg-type]


class TestMoney:
    """What `tx[Charges]`, `tx[BudgetPeriods]` and `tx[MergedRuns]` must do."""

    async def test_charges_are_summed(self, make_store: MakeStore) -> None:
        """By owner, agent, model and day; open ones are left out, unknown ones counted."""
        store = await make_store()
        rows = [
            _charge(1, cost=0.5),
            _charge(2, cost=0.25, owner_id=8, agent=None),
            _charge(3, cost=None),
            opened(4, 1, 7, "coder", NOW),
        ]

        def check(tx: Tx) -> None:
            tx[Charges].put_many(rows)
            tx[Charges].put_many([rows[0]])  # replaces it
            assert tx[Charges].of_runs([1, 4]) == [rows[0], rows[3]]
            by_owner = tx[Charges].sums("schedule", since=NOW, until=NOW + 1)
            assert [tuple(row) for row in by_owner] == [("7", 2, 10, 500_000_000, 1), ("8", 1, 10, 250_000_000, 0)]
            by_agent = {row.key: row.cost for row in tx[Charges].sums("agent", since=NOW, until=NOW + 1)}
            assert by_agent == {"coder": 500_000_000, "": 250_000_000}
            by_day = tx[Charges].sums("day", since=NOW, until=NOW + 1, days=[DayOf("2026-01-01", DAY)])
            assert [tuple(row) for row in by_day] == [("2026-01-01", 3, 20, 750_000_000, 1)]
            assert tx[Charges].spent("all", "usd", DAY) == 750_000_005
            assert tx[Charges].spent("agent:coder", "usd", DAY) == 500_000_005
            assert tx[Charges].spent("schedule:8", "tokens", DAY) == 10
            assert tx[Charges].known(unit="usd", owner_id=7, until=NOW, limit=5) == [500_000_000]
            assert tx[Charges].known(unit="tokens", agent="coder", until=NOW, limit=5) == [10]
            assert tx[Charges].costs_of("coder", since=NOW, until=NOW + 1, limit=5) == [(NOW, 500_000_000)]
            tx[Charges].remove_attempt(4, 1)
            assert tx[Charges].of_runs([4]) == []
            ended = [charge.run_id for charge in tx[Charges].of_runs([1, 2, 3, 4, 5]) if charge.settled_at is not None]
            by_agents = [run_id for run_id in ended if tx[Charges].of_runs([run_id])[0].agent is not None]
            assert by_agents and tx[Charges].ended_since(NOW - 1, asked_since=NOW - 1) == by_agents
            assert tx[Charges].ended_since(NOW - 1, asked_since=NOW + 1) == []
            assert tx[Charges].ended_since(NOW + 10_000, asked_since=NOW - 1) == []
            tx[Charges].put_many([_charge(5, cost=0.0)._replace(tokens=0), _charge(6, cost=0.0)])
            assert tx[Charges].known(unit="usd", owner_id=7, until=NOW, limit=5) == [0, 500_000_000]  # 5 used nothing
            assert tx[Charges].known(unit="tokens", agent="coder", until=NOW, limit=5) == [10, 10]
            assert len(tx[Charges].costs_of("coder", since=NOW, until=NOW + 1, limit=5)) == 2

        await store.write(check)

    async def test_charges_of_a_wrong_clock_are_dated_now(self, make_store: MakeStore) -> None:
        """Those ahead of the clock, and those older than the store. Old ones are pruned, with what they had
        reserved."""
        store = await make_store()

        def check(tx: Tx) -> None:
            tx[Charges].put_many(
                [_charge(1, cost=0.5, at=NOW + 10_000), _charge(2, cost=0.5), _charge(3, cost=0.5, at=5)]
            )
            assert tx[Charges].redate(after=NOW + 10_000, since=5, now=NOW) == []
            assert tx[Charges].redate(after=NOW + 9_999, since=5, now=NOW) == [7]
            assert [row.at for row in tx[Charges].of_runs([1, 2, 3])] == [NOW, NOW, 5]
            tx[Reservations].add_many([Reservation(1, 1, 1, 5)])
            assert tx[Charges].prune(before=NOW, limit=10, since=6) == 0
            assert tx[Charges].redate(after=NOW, since=6, now=NOW) == [7]
            assert tx[Charges].prune(before=NOW, limit=10) == 0
            assert tx[Charges].prune(before=NOW + 1, limit=10) == 3
            assert tx[Reservations].of_attempt(1, 1) == []

        await store.write(check)

    async def test_a_budget_begins_with_what_was_spent(self, make_store: MakeStore) -> None:
        """It is created once, and its sums are kept."""
        store = await make_store()

        def check(tx: Tx) -> None:
            tx[Charges].put_many([_charge(1, cost=0.5)])
            budget = tx[BudgetPeriods].open([(LIMIT, DAY, "UTC")])[LIMIT]
            assert budget is not None and (budget.spent, budget.reserved, budget.zone) == (500_000_000, 0, "UTC")
            tx[BudgetPeriods].save_many([budget._replace(reserved=3)])
            tx[Reservations].add_many([Reservation(9, 1, budget.budget_id, 3)])
            again = tx[BudgetPeriods].open([(LIMIT, DAY, "UTC")])[LIMIT]
            assert again == budget._replace(reserved=3)
            assert tx[BudgetPeriods].at(["all"], NOW) == [again]
            assert tx[BudgetPeriods].at(["agent:x"], NOW, also=[budget.budget_id]) == [again]
            assert tx[BudgetPeriods].at(["all"], NOW + 1_000) == []
            assert tx[BudgetPeriods].current(NOW) == [again]
            assert tx[Reservations].of_attempt(9, 1) == [Reservation(9, 1, budget.budget_id, 3)]
            tx[Reservations].release(9, 1)
            assert tx[Reservations].of_attempt(9, 1) == []
            tx[BudgetPeriods].remove_misdated(since=NOW + 1_000, now=NOW)
            assert tx[BudgetPeriods].current(NOW) == [again]
            tx[BudgetPeriods].forget(before=NOW + 1_001)
            assert tx[BudgetPeriods].current(NOW) == []

        await store.write(check)

    async def test_the_id_of_a_removed_budget_is_not_given_again(self, make_store: MakeStore) -> None:
        """Otherwise what an open attempt had reserved in it would count for another budget."""
        store = await make_store()

        def check(tx: Tx) -> None:
            later = tx[BudgetPeriods].open([(LIMIT, Window(NOW + 1, NOW + 9), "UTC")])[LIMIT]
            tx[BudgetPeriods].remove_misdated(since=0, now=NOW)
            today = tx[BudgetPeriods].open([(LIMIT, DAY, "UTC")])[LIMIT]
            assert later is not None and today is not None and later.budget_id != today.budget_id
            assert tx[BudgetPeriods].at([], NOW, also=[later.budget_id]) == []

        await store.write(check)

    async def test_spending_is_kept_by_owner(self, make_store: MakeStore) -> None:
        """Replaced by owner; those of long ago are pruned."""
        store = await make_store()
        rows = [Spending(owner, *DAY, 5, NOW - 5_000, NOW + 5_000, 9, 1, None) for owner in (3, 7)]
        ahead = Spending(8, NOW + 10, NOW + 20, 5, NOW - 1, NOW + 30, 9, 1, 4)

        def check(tx: Tx) -> None:
            tx[SpendingTotals].put_many([*rows, ahead])
            tx[SpendingTotals].put_many([rows[0]._replace(day_cost=6)])
            assert tx[SpendingTotals].lock([7, 3, 99]) == {3: rows[0]._replace(day_cost=6), 7: rows[1]}
            assert tx[SpendingTotals].lock([]) == {}
            tx[Charges].prune(before=NOW + 40, limit=10, since=NOW + 31)
            assert sorted(tx[SpendingTotals].lock([3, 7, 8])) == [3, 7, 8]
            tx[Charges].prune(before=NOW + 40, limit=10)
            assert sorted(tx[SpendingTotals].lock([3, 7, 8])) == [3, 7]

        await store.write(check)

    async def test_limits_and_brakes(self, make_store: MakeStore) -> None:
        """A limit is replaced, and removed once."""
        store = await make_store()

        def check(tx: Tx) -> None:
            tx[SetLimits].put(SetLimit("all", "usd", "day", 5, NOW))
            tx[SetLimits].put(SetLimit("all", "usd", "day", 6, NOW))
            assert [row.amount for row in tx[SetLimits].all()] == [6]
            assert tx[SetLimits].remove_limit("all", "usd", "day")
            assert not tx[SetLimits].remove_limit("all", "usd", "day")
            tx[Brakes].put(Brake("coder", NOW, "too expensive"))
            assert list(tx[Brakes].all()) == ["coder"]
            assert tx[Brakes].remove("coder") and not tx[Brakes].remove("coder")

        await store.write(check)

    async def test_merged_runs_resolve(self, make_store: MakeStore) -> None:
        """Until the row they were merged into is gone."""
        store = await make_store()

        def check(tx: Tx) -> None:
            tx[MergedRuns].add_many([MergedRun(5, 4), MergedRun(6, 4)])
            assert (tx[MergedRuns].get(6), tx[MergedRuns].get(7)) == (MergedRun(6, 4), None)
            assert tx[MergedRuns].prune(before=NOW, limit=1) == 1
            assert tx[MergedRuns].prune(before=NOW, limit=9) == 1

        await store.write(check)
