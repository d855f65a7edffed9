// The first view: what needs a person, what comes next, what runs, what happened since the last visit, what it cost.

import { get } from "../lib/api.js";
import { fill, h, keyed, quoted, say } from "../lib/dom.js";
import { lastVisit } from "../lib/last-visit.js";
import { dollars } from "../lib/money.js";
import { rowName } from "../lib/timeline-others.js";
import { count, outcomeWords, placeOf, preview } from "../lib/text.js";
import { at, budgetWords, format, relative, wall, when } from "../lib/time.js";
import { ACKNOWLEDGE, attentionRow, isAcknowledgeable } from "../parts/attention.js";
import { chip, mark } from "../parts/marks.js";
import { body, copyable, head, link, panel } from "../parts/elements.js";

const KINDS = { retry: "retry", waiting: "waiting", producer: "producer", wakeAt: "consumer", wake: "wake" };

export default async function today(visit) {
  const since = lastVisit === null ? null : new Date(lastVisit).toISOString();
  const facts = h("p", { class: "today-facts" });
  const first = h("div");
  const troubles = h("ul", { class: "attentions", "aria-live": "polite", "aria-label": "Needs attention" });
  const well = h("p", { class: "well", role: "status" });
  const halted = h("ul", { class: "attentions", "aria-label": "Paused" });
  const [troubleCount, haltedCount] = [h("span", { class: "soft" }), h("span", { class: "soft" })];
  const help = h("p", { class: "help soft small" }, h("b", null, "Acknowledge"), `: ${ACKNOWLEDGE}`);
  const troublePanel = panel(["Needs attention ", troubleCount], troubles, help);
  const haltedPanel = panel(["Paused ", haltedCount], halted);
  const running = h("ul", { class: "glances", "aria-label": "Running now" });
  const next = h("ul", { class: "glances", "aria-label": "Next" });
  const happened = h("div", { class: "row small" });
  const runList = h("ul", { class: "glances" });
  const happenedTitle = h("h2");

  let again = null;
  const changed = () => again();

  const show = (data) => {
    const urgent = data.attention.filter((item) => item.level !== "note");
    const notes = data.attention.filter((item) => item.level === "note");
    say(facts, factWords(data));
    fill(first, data.isEcho ? firstRun() : null);
    say(troubleCount, urgent.length);
    say(haltedCount, notes.length);
    troublePanel.classList.toggle("hidden", !urgent.length);
    help.classList.toggle("hidden", !urgent.some(isAcknowledgeable));
    well.classList.toggle("hidden", urgent.length > 0);
    fill(well, mark("succeeded"), "Nothing needs attention.");
    haltedPanel.classList.toggle("hidden", !notes.length);
    keyed(troubles, urgent, (item) => attentionRow(item, changed));
    keyed(halted, notes, (item) => attentionRow(item, changed));
    keyed(running, data.running.length ? data.running : [null], runningRow, (run) => run?.runId);
    keyed(next, data.upcoming.length ? data.upcoming : [null], nextRow);
    say(happenedTitle, lastVisit === null ? "In the last 24 hours" : `Since your last visit, ${relative(lastVisit)}`);
    fill(happened, counts(data.happened));
    keyed(runList, data.happened.runs, runItem, (run) => run.runId);
  };
  const load = async () => show(await get("/api/today", { since }, visit.signal));
  again = await visit.keep(null, load);
  return {
    title: "Today",
    element: h(
      "div",
      { class: "stack" },
      head("Today", facts, link("Timeline", "#/timeline", { symbol: "timeline", "aria-keyshortcuts": "t" })),
      first,
      h(
        "div",
        { class: "columns" },
        h(
          "div",
          { class: "stack" },
          troublePanel,
          well,
          haltedPanel,
          h("section", { class: "panel" }, h("header", null, happenedTitle), body(happened), runList),
        ),
        h("div", { class: "stack" }, panel("Next", next), panel("Running now", running)),
      ),
    ),
  };
}

/** The date, and today's cost. */
function factWords({ now, cost, counts }) {
  const date = format({ weekday: "long", day: "numeric", month: "long" }).format(at(now));
  const spent = `${dollars(cost.cost)} spent today${cost.unknown ? ` (cost of ${count(cost.unknown, "run")} unknown)` : ""}`;
  return [date, spent, counts.unread ? count(counts.unread, "unread message") : null].filter(Boolean).join(" · ");
}

/** On the first run: the agent is a stand-in, and how to get a real one. */
const firstRun = () =>
  h(
    "div",
    { class: "note" },
    h(
      "div",
      { class: "grow" },
      h("b", null, "No real agent is configured yet. "),
      "The default agent is “echo”: it returns each prompt as its reply, and costs nothing. This command finds the agents that are installed on this machine:",
      copyable("wakeful init"),
    ),
    link("Agents", "#/agents", { kind: "small" }),
  );

const none = (words) => h("li", { class: "faint" }, words);

function runningRow(run) {
  if (run === null) return none("Nothing is running.");
  return h(
    "li",
    null,
    mark("running"),
    h("a", { class: "cut grow", href: `#/runs/${run.runId}` }, quoted(run.slug)),
    h("span", { class: "soft" }, "started ", when(run.startedAt)),
  );
}

function nextRow(fire) {
  if (fire === null) return none("Nothing is planned in the next seven days.");
  const what = KINDS[fire.kind];
  const name = rowName(fire.handler ? `${fire.slug}/${fire.handler}` : fire.slug);
  return h(
    "li",
    null,
    mark(fire.budgetFreesAt ? "skipped" : "planned"),
    h(
      "span",
      { class: "grow" },
      h("a", { class: "cut", href: placeOf(fire.slug) }, quoted(name)),
      fire.budgetFreesAt ? h("small", { class: "soft" }, budgetWords(fire.budgetFreesAt)) : null,
    ),
    what ? quoted(what, { class: "soft small" }) : null,
    when(fire.dueAt),
  );
}

function counts({ counts: byOutcome, isCut }) {
  const chips = Object.entries(byOutcome).map(([outcome, n]) =>
    h(
      "a",
      { href: `#/runs?outcome=${outcome}` },
      chip(outcome, { words: `${n.toLocaleString()}${isCut ? "+" : ""} ${outcomeWords(outcome)}` }),
    ),
  );
  return chips.length ? chips : h("span", { class: "faint" }, "Nothing ran.");
}

function runItem(run) {
  return h(
    "li",
    { title: wall(at(run.startedAt ?? run.plannedAt)) },
    mark(run.outcome),
    h(
      "a",
      { class: "cut grow", href: `#/runs/${run.runId}` },
      h("b", null, quoted(run.slug)),
      " ",
      quoted(preview(run.error ?? run.reply), { class: "soft" }),
    ),
    when(run.endedAt ?? run.startedAt ?? run.plannedAt),
  );
}
