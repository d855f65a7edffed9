// The ledger: the outcome of every instant of every schedule, newest first; narrowed by text, time, outcome and schedule.

import { get } from "../lib/api.js";
import { fill, h, say, settled } from "../lib/dom.js";
import { localZone } from "../lib/time.js";
import { icon } from "../parts/icons.js";
import { runRow } from "../parts/run.js";
import { button, choices, empty, field, head, panel } from "../parts/elements.js";

const PAGE = 50;
const HELD_MAX = 500;
const OUTCOMES = [
  ["", "All"],
  ["failed", "Failed"],
  ["timedOut", "Timed out"],
  ["unconfirmed", "Unconfirmed"],
  ["unknown", "Unknown"],
  ["missed", "Missed"],
  ["skipped", "Skipped"],
  ["cancelled", "Cancelled"],
  ["running", "Running"],
  ["waiting", "Waiting"],
  ["succeeded", "Succeeded"],
];
const NAMES = ["outcome", "q", "slug", "from", "until"];

export default async function runs(visit) {
  const wanted = Object.fromEntries(NAMES.map((name) => [name, visit.query.get(name) ?? ""]));
  let rows = [];
  let next = null;
  let asked = 0;
  const open = new Set();
  const list = h("div");
  const status = h("span", { class: "soft small", role: "status" });
  const more = button("Older", () => older().catch(visit.ignore));
  const isNarrowed = () => NAMES.some((name) => wanted[name]);

  const none = () =>
    isNarrowed()
      ? empty("search", "No matches", "No run in the ledger matches these filters.", {
          action: button("Show all", () => {
            for (const name of NAMES) wanted[name] = "";
            showFilters();
            narrowed();
          }),
        })
      : empty(
          "ledger",
          "The ledger is empty",
          "Every planned instant becomes one row here, which says how far it got if it ran, or why it was skipped or missed.",
        );
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
        : next === null
          ? none()
          : empty("search", "Nothing found yet", "Older runs have not been searched."),
    );
    say(more.lastChild, rows.length ? "Older" : "Search older runs");
    more.classList.toggle("hidden", next === null);
  };
  const page = (cursor) => {
    const { outcome, q, slug, from, until } = wanted;
    const query = { limit: PAGE, outcome, q, slug, since: dayStart(from), until: dayStart(until, 1), cursor };
    return get("/api/runs", query, visit.signal);
  };
  const load = visit.loader(async () => {
    const mine = asked;
    try {
      const batch = await page(null);
      if (mine !== asked) return;
      rows = batch.runs;
      next = batch.next;
      say(status, "");
    } catch (error) {
      if (error.status !== 404 && error.status !== 400) throw error;
      [rows, next] = [[], null];
      say(status, error.message);
    }
    show();
  });
  const older = async () => {
    const batch = await page(next);
    rows = [...rows, ...batch.runs].slice(-HELD_MAX);
    next = batch.next;
    show();
  };
  const narrowed = () => {
    visit.setQuery(wanted);
    asked += 1;
    load().catch(visit.ignore);
  };

  const soon = settled(narrowed, 200);
  const input = (name, type, label, more0 = {}) =>
    h("input", {
      type,
      "aria-label": label,
      value: wanted[name],
      data: { filter: name },
      oninput: (event) => {
        wanted[name] = event.target.value.trim();
        soon();
      },
      ...more0,
    });
  const search = input("q", "search", "Search", { placeholder: "Text in name, error, reply or output" });
  const slug = input("slug", "text", "Schedule", { placeholder: "any", spellcheck: "false", autocapitalize: "none" });
  const from = input("from", "date", "From");
  const until = input("until", "date", "Until");
  const filter = choices("Outcome", OUTCOMES, wanted.outcome, (chosen) => {
    wanted.outcome = chosen;
    narrowed();
  });
  const showFilters = () => {
    for (const input of [search, slug, from, until]) input.value = wanted[input.dataset.filter];
    filter.choose(wanted.outcome);
  };

  const again = visit.again(async () => {
    if (rows.length <= PAGE && !open.size) await load();
  }, 1_000);
  visit.hear(["runs"], again);
  await load();
  visit.repair(again);
  return {
    title: "Ledger",
    element: h(
      "div",
      { class: "stack" },
      head("Ledger", "The outcome of every planned instant, newest first.", status),
      h("div", { class: "filters" }, h("div", { class: "search" }, icon("search"), search), filter),
      h(
        "details",
        { class: "more-filters", open: Boolean(wanted.slug || wanted.from || wanted.until) },
        h("summary", { class: "soft small" }, "Schedule and dates"),
        h(
          "div",
          { class: "pairs" },
          field("slug", "Schedule", slug),
          field("from", "From", from, `the start of this day, ${localZone}`),
          field("until", "Until", until, "the end of this day"),
        ),
      ),
      panel(null, list),
      h("div", null, more),
    ),
  };
}

/** The start of the local day that many days later, for the API; null without a day. */
function dayStart(day, later = 0) {
  const [year, month, date] = day.split("-").map(Number);
  return date ? new Date(year, month - 1, date + later).toISOString() : null;
}
