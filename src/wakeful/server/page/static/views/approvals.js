// Agents' proposals, as they would be carried out: every field that changes, and when it would run.

import { get, post } from "../lib/api.js";
import { scheduleForm } from "../lib/definition.js";
import { fill, h, quoted } from "../lib/dom.js";
import { dollars } from "../lib/money.js";
import { written } from "../lib/text.js";
import { at, localised, wall, when } from "../lib/time.js";
import { attempt } from "../parts/dialogs.js";
import { words } from "../parts/object-facts.js";
import { body, button, empty, facts, head, panel, table } from "../parts/elements.js";

const WORDS = "Agents can propose schedules. Nothing runs until you approve it.";
const NONE = "When an agent proposes a schedule or a change, it is shown here with everything it would do.";
const TITLES = { prompt: "Prompt", command: "Command", http: "Request", call: "Python call", event: "Event", dispatch: "Hand over to workers" };
const KINDS = { create: " – a new schedule by ", edit: " – a change by ", run: " – one run of it, by " };
const ACTIONS = Object.keys(TITLES);
const INSTANT = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/;

export default async function approvals(visit) {
  const list = h("div", { class: "stack", role: "list", "aria-label": "Proposals" });
  const none = h("div");
  const load = async () => {
    const data = await get("/api/approvals", {}, visit.signal);
    if (visit.isSame(data)) return;
    list.classList.toggle("hidden", !data.approvals.length); // a list without items is none
    fill(
      list,
      data.approvals.map((proposed) => proposal(proposed, decide)),
    );
    fill(none, data.approvals.length ? null : panel(null, empty("check", "Nothing is waiting", NONE)));
  };
  const decide = (proposed, decision) =>
    attempt(
      () => post(`/api/approvals/${proposed.id}`, { decision }),
      (decided) => `${proposed.slug} ${decided.status}${decided.missed ? "; its time has passed, so it will not run" : ""}`,
    ).then(() => {
      dispatchEvent(new Event("approvals"));
      return load().catch(visit.ignore);
    });
  await learnLabels().catch(visit.ignore);
  await visit.keep(["schedules", "deliveries", "alerts"], load);
  visit.every(15_000, () => load().catch(visit.ignore)); // a proposal that expires has no event
  return { title: "Approvals", element: h("div", { class: "stack" }, head("Approvals", WORDS), list, none) };
}

function proposal(proposed, decide) {
  const isNew = proposed.change === "create";
  return h(
    "div",
    { role: "listitem", data: { proposal: proposed.id } },
    panel(
      [quoted(proposed.slug), h("span", { class: "soft" }, KINDS[proposed.change], quoted(proposed.owner))],
      { actions: h("span", { class: "soft small" }, "asked ", when(proposed.askedAt)) },
      body(
        facts([
          ["When", quoted(localised(proposed.understood))],
          ["Next", proposed.next.length ? h("ul", null, proposed.next.slice(0, 3).map((time) => h("li", null, wall(at(time)), h("span", { class: "soft" }, ", ", when(time))))) : "never"],
        ]),
        action(proposed.definition),
        isNew ? options(proposed.changes) : proposed.changes.length ? differences(proposed.changes) : null,
        proposed.note ? [h("h3", null, "Note from the agent"), text(proposed.note)] : null,
        facts([
          [
            "Asked during",
            proposed.lineage?.runId
              ? [h("a", { href: `#/runs/${proposed.lineage.runId}` }, `run ${proposed.lineage.runId}`), " of ", quoted(proposed.lineage.slug), `, depth ${proposed.lineage.depth}`]
              : null,
          ],
          ["Expected cost", proposed.estimate === null ? "unknown" : `about ${dollars(proposed.estimate)} in 30 days`],
          ["Decide by", [wall(at(proposed.expiresAt)), h("span", { class: "soft" }, ", ", when(proposed.expiresAt))]],
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
  return [h("h3", null, TITLES[name]), text(typeof value === "string" ? value : JSON.stringify(value, null, 2))];
}

/** The other fields of a new schedule that are not defaults, with the labels of the form. */
function options(changes) {
  const rest = changes.filter(({ field }) => field !== "schedule" && !ACTIONS.includes(field));
  return rest.length ? facts(rest.map(({ field, new: now }) => [labels.get(field) ?? capital(words(field)), option(field, now)])) : null;
}

const labels = new Map();
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** Learn the labels of the fields from the form; without it, their names will do. */
async function learnLabels() {
  const form = await scheduleForm();
  const fields = [...form.actions.flatMap((kind) => kind.fields), ...form.options];
  for (const { name, label } of fields) labels.set(name, label);
  labels.set("deliver", labels.get("deliver.channel"));
}

/** The value of an option: a time in the style of the page, a text as it is, anything else as JSON. */
function option(field, value) {
  if (field === "deliver" && value?.channel && Object.keys(value).length === 1) return quoted(written(value.channel));
  if (typeof value !== "string") return json(value);
  return INSTANT.test(value) ? [wall(at(value)), h("span", { class: "soft" }, ", ", when(value))] : quoted(written(value));
}

/** Every field that would be different: before and after. */
function differences(changes) {
  const rows = changes.map(({ field, old, new: now }) => [h("code", null, field), json(old), json(now)]);
  return table("Changed fields", ["Field", "Now", "Then"], rows);
}
