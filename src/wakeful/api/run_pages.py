"""Pages of the ledger, for all nouns that have runs."""

from dataclasses import replace
from typing import Annotated, Final, NamedTuple

from wakeful.api.operation import Returns
from wakeful.core.description import Field, Object
from wakeful.core.returned import RunCursor, kind_of, kind_of_object, returned
from wakeful.core.run.runs import Outcome
from wakeful.features.schedules.ledger import Search, SearchPage, search
from wakeful.features.schedules.run_views import RUN, RunView
from wakeful.features.workflows.queries import handlers_of
from wakeful.ports.store import Tx

PAGE: Final = returned(SearchPage, name="Runs")
RUNS: Final = Returns(PAGE, "Newest first.")

HANDLER_RUN: Final = Object(
    "HandlerRunRow",
    "One ledger row of a workflow.",
    [*RUN.fields, Field(kind_of(str | None), "the handler concerned", name="handler")],
    RunView,
)


class WorkflowRunsPage(NamedTuple):
    """A page of a workflow's ledger, newest first."""

    runs: list[Annotated[RunView, kind_of_object(HANDLER_RUN)]]
    next: Annotated[RunCursor, "cursor of the next page; null on the last page"]


WORKFLOW_PAGE: Final = returned(WorkflowRunsPage, name="WorkflowRuns")
WORKFLOW_RUNS: Final = Returns(WORKFLOW_PAGE, "Newest first.")


def workflow_runs(
    tx: Tx, name: str, outcome: Outcome | None = None, *, limit: int, before_id: int | None
) -> WorkflowRunsPage:
    """Runs of a workflow's handlers, each with its handler. `NotFound` if none of them has ever run."""
    rows, following = search(tx, Search(f"workflow:{name}", outcome), limit=limit, before_id=before_id)
    handlers = handlers_of(tx, [run.run_id for run in rows])
    return WorkflowRunsPage([replace(run, handler=handlers.get(run.run_id)) for run in rows], following)
