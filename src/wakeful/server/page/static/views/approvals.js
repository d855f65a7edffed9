// Agents' proposals, as they would be carried out: every field that changes, and when it would run.

import { get, post } from "../lib/api.js";
import { fill, h, quoted } from "../lib/dom.js";
import { dollars } from "../lib/money.js";
import { written } from "../lib/text.js";
import { at, localised, wall, when } from "../lib/time.js";
import { attempt } from "../parts/dialogs.js";
import { body, button, empty, facts, head, panel, table } from "../parts/elements.js";

const WORDS = "Agents can propose schedules. Nothing runs until you approve it.";
const ACTIONS = ["prompt", "command", "http", "call", "event", "dispatch"];

export default async function approvals(visit) {
  const list = h("div", { class: "stack", role: "list", "aria-label": "Proposals" });
  const load = async () => {
    const data = await get("/api/approvals", {}, visit.signal);
    if (visit.isSame(data)) return;
    fill(
      list,
      data.approvals.length
        ? data.approvals.map((proposed) => proposal(proposed, decide))
        : panel(null, empty("check", "Nothing is waiting", "When an agent proposes a schedule or a change, it is shown here with everything it would do.")),
    );
  };
  const decide = (proposed, decision) =>
    attempt(
      () => post(`/api/approvals/${proposed.id}`, { decision }),
      (decided) => `${proposed.slug} ${decided.status}${decided.missed ? "; its time has passed, so it will not run" : ""}`,
    ).then(() => {
      dispatchEvent(new Event("approvals"));
      return load().catch(visit.ignore);
    });
  await visit.keep(["schedules", "deliveries", "alerts"], load);
  visit.every(15_000, () => load().catch(visit.ignore)); // a proposal that expires has no event
  return { title: "Approvals", element: h("div", { class: "stack" }, head("Approvals", WORDS), list) };
}

function proposal(proposed, decide) {
  const isNew = proposed.change === "create";
  return h(
    "div",
    { role: "listitem", data: { proposal: proposed.id } },
    panel(
      [quoted(proposed.slug), h("span", { class: "soft" }, isNew ? " – a new schedule" : " – a change"), " by ", quoted(proposed.owner)],
      { actions: h("span", { class: "soft small" }, "asked ", when(proposed.askedAt)) },
      body(
        facts([
          ["When", quoted(localised(proposed.understood))],
          ["Next", proposed.next.length ? h("ul", null, proposed.next.slice(0, 3).map((time) => h("li", null, wall(at(time)), " ", when(time)))) : "never"],
        ]),
        action(proposed.definition),
        isNew ? options(proposed.changes) : differences(proposed.changes),
        proposed.note ? [h("h3", null, "Its note"), text(proposed.note)] : null,
        facts([
          [
            "Asked during",
            proposed.lineage?.runId
              ? [h("a", { href: `#/runs/${proposed.lineage.runId}` }, `run ${proposed.lineage.runId}`), " of ", quoted(proposed.lineage.slug), `, depth ${proposed.lineage.depth}`]
              : null,
          ],
          ["Expected cost", proposed.estimate === null ? "unknown" : `about ${dollars(proposed.estimate)} in 30 days`],
          ["Expires", when(proposed.expiresAt)],
        ]),
        h(
          "div",
          { class: "row" },
          button("Approve", () => decide(proposed, "approve"), { kind: "primary", symbol: "check", label: `Approve ${proposed.slug}` }),
          button("Reject", () => decide(proposed, "reject"), { kind: "danger", symbol: "close", label: `Reject ${proposed.slug}` }),
        ),
      ),
    ),
  );
}

const text = (given) => h("pre", { class: "text whole", tabindex: 0 }, quoted(written(given)));
const json = (value) => (value === null ? h("span", { class: "faint" }, "default") : quoted(written(JSON.stringify(value)), { class: "mono" }));

/** The proposed action: a prompt as text, anything else as JSON. */
function action(definition) {
  const name = ACTIONS.find((kind) => definition[kind] != null);
  const value = definition[name];
  return [h("h3", null, `Its ${name}`), text(typeof value === "string" ? value : JSON.stringify(value, null, 2))];
}

/** The other fields of a new schedule that are not defaults. */
function options(changes) {
  const rest = changes.filter(({ field }) => field !== "schedule" && !ACTIONS.includes(field));
  return rest.length ? facts(rest.map(({ field, new: now }) => [field, json(now)])) : null;
}

/** Every field that would be different: before and after. */
function differences(changes) {
  const rows = changes.map(({ field, old, new: now }) => [h("code", null, field), json(old), json(now)]);
  return table("Changed fields", ["Field", "Now", "Then"], rows);
}
