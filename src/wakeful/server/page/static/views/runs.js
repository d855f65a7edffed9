// The ledger: the outcome of every instant of every schedule, newest first.

import { get } from "../lib/api.js";
import { fill, h } from "../lib/dom.js";
import { runRow } from "../parts/run.js";
import { button, choices, empty, head, panel } from "../parts/elements.js";

const PAGE = 50;
const HELD_MAX = 500;
const OUTCOMES = [
  ["", "All"],
  ["running", "Running"],
  ["waiting", "Waiting"],
  ["succeeded", "Succeeded"],
  ["failed", "Failed"],
  ["timedOut", "Timed out"],
  ["unconfirmed", "Unconfirmed"],
  ["unknown", "Unknown"],
  ["cancelled", "Cancelled"],
  ["skipped", "Skipped"],
  ["missed", "Missed"],
];

export default async function runs(visit) {
  let outcome = visit.query.get("outcome") ?? "";
  let rows = [];
  let next = null;
  const open = new Set();
  const list = h("div");
  const more = button("Older", () => older().catch(visit.ignore));
  const show = () => {
    fill(
      list,
      rows.length
        ? rows.map((run) =>
            runRow(run, {
              withSlug: true,
              isOpen: open.has(run.runId),
              ontoggle: (is) => (is ? open.add(run.runId) : open.delete(run.runId)),
            }),
          )
        : empty(
            "ledger",
            outcome ? "No runs with this outcome" : "The ledger is empty",
            "Every planned instant becomes one row here, which says how far it got if it ran, or why it was skipped or missed.",
          ),
    );
    more.classList.toggle("hidden", next === null);
  };
  const page = (cursor) => get("/api/runs", { limit: PAGE, outcome, cursor }, visit.signal);
  const load = visit.loader(async () => {
    const found = await page(null);
    rows = found.runs;
    next = found.next;
    show();
  });
  const older = async () => {
    const found = await page(next);
    rows = [...rows, ...found.runs].slice(-HELD_MAX);
    next = found.next;
    show();
  };
  const again = visit.again(async () => {
    if (rows.length <= PAGE && !open.size) await load();
  }, 1_000);
  visit.hear(["runs"], again);
  await load();
  const filter = choices("Outcome", OUTCOMES, outcome, (chosen) => {
    outcome = chosen;
    load().catch(visit.ignore);
  });
  return {
    title: "Ledger",
    element: h(
      "div",
      { class: "stack" },
      head("Ledger", "The outcome of every planned instant, newest first."),
      h("div", null, filter),
      panel(null, list),
      h("div", null, more),
    ),
  };
}
