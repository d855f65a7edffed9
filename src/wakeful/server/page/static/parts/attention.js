// One problem on the first view: what is wrong, its cure, and the buttons that act on it.

import { ask, get, post, schedulePath } from "../lib/api.js";
import { h, quoted } from "../lib/dom.js";
import { placeOf, written } from "../lib/text.js";
import { localised, when } from "../lib/time.js";
import { attempt, confirm } from "./dialogs.js";
import { button, link } from "./elements.js";
import { mark } from "./marks.js";

const MARKS = {
  stuck: "unknown",
  failing: "failed",
  late: "missed",
  agent: "failed",
  brake: "disabled",
  deadLetter: "failed",
  delivery: "waiting",
  budget: "unconfirmed",
  approval: "waiting",
  incident: "failed",
  finding: "unconfirmed",
  paused: "paused",
};
const WORDS = {
  stuck: "stuck",
  failing: "failing",
  late: "late",
  agent: "agent missing",
  brake: "agent stopped",
  deadLetter: "undelivered",
  delivery: "delivery failing",
  budget: "budget",
  approval: "approval",
  incident: "incident",
  finding: "finding",
  paused: "paused",
};

/** What the button "Acknowledge" does. */
export const ACKNOWLEDGE = "Closes the alert; nothing is run. It is reported again if the problem comes back.";

/** Whether an item has a button "Acknowledge". */
export const isAcknowledgeable = (item) =>
  item.kind === "failing"
    ? item.status === "done" || item.byHand || (item.status !== "invalid" && Boolean(item.alertId))
    : ["budget", "incident", "finding", "stuck"].includes(item.kind) && Boolean(item.alertId);

/** The view about the subject of an item. */
function placeOfItem(item) {
  if (item.kind === "approval") return "#/approvals";
  if (item.kind === "agent" || item.kind === "brake") return "#/agents";
  if (item.kind === "budget") return item.slug ? placeOf(item.slug) : "#/cost";
  if (item.deliveryId)
    return `#/outbox?status=${item.kind === "deadLetter" ? "dead" : "pending"}&open=${encodeURIComponent(item.deliveryId)}`;
  if (item.kind === "finding") return { workflows: "#/workflows", slots: "#/slots", channels: "#/channels" }[item.title] ?? "#/health";
  return item.runId ? `#/runs/${item.runId}` : item.slug ? placeOf(item.slug) : "#/health";
}

/** The buttons of an item: what to do about it, most useful first. `changed` is called after each. */
function buttons(item, changed) {
  const act = (words, symbol, request, done, title = null) =>
    button(words, () => attempt(request, done).then(changed), { kind: "small", symbol, title, label: `${words}: ${item.title}` });
  const schedule = (below) => () => post(schedulePath(item.slug, below));
  const open = link("Open", placeOfItem(item), { kind: "small", "aria-label": `Open: ${item.title}` });
  const acknowledge = item.alertId
    ? act("Acknowledge", "check", () => post(`/api/alerts/${item.alertId}/acknowledge`), "Acknowledged", ACKNOWLEDGE)
    : null;
  const again = act("Run again", "again", schedule("/run"), `${item.slug}: run requested`);
  const edit = item.slug
    ? link("Edit", `#/schedules/${encodeURIComponent(item.slug)}/edit?field=action`, { kind: "small", "aria-label": `Edit: ${item.title}` })
    : null;
  switch (item.kind) {
    case "failing":
      if (item.status === "invalid") return [edit, open];
      if (item.status === "disabled" && !item.byHand)
        return [act("Resume", "play", schedule("/resume"), `${item.slug} is on again`), again, acknowledge, open];
      if (item.status === "done" || item.byHand)
        return [again, act("Acknowledge", "check", schedule("/acknowledge"), "Acknowledged", ACKNOWLEDGE), open];
      return [again, item.agent ? null : edit, acknowledge, open];
    case "late":
      return [act("Run now", "play", schedule("/run"), `${item.slug}: run requested`), open];
    case "paused":
      return [act("Resume", "play", schedule("/resume"), `${item.slug} is on again`), open];
    case "approval": {
      const decide = (decision) => () => post(`/api/approvals/${item.approvalId}`, { decision });
      const approve = async () => {
        if (!(await isReviewed(item))) return;
        await attempt(decide("approve"), `${item.slug} was approved`);
        changed();
      };
      return [
        button("Approve", approve, { kind: "small", symbol: "check", label: `Approve: ${item.title}` }),
        act("Reject", "close", decide("reject"), `${item.slug} was rejected`),
        open,
      ];
    }
    case "deadLetter":
    case "delivery": {
      const path = `/api/deliveries/${item.deliveryId}`;
      const discard = async () => {
        if (!(await confirm("Discard this message?", "It will not be sent, and there is no other copy.", "Discard", "Keep the message")))
          return;
        await attempt(() => ask("DELETE", path), "Discarded");
        changed();
      };
      return [
        act("Send again", "again", () => post(`${path}/retry`), "Queued to be sent again"),
        item.kind === "deadLetter"
          ? button("Discard", discard, { kind: "small danger", label: `Discard: ${item.title}` })
          : null,
        open,
      ];
    }
    case "budget": {
      const asked = new URLSearchParams({ field: item.field ?? "budget", ...(item.needed ? { needed: item.needed } : {}) });
      const place = item.slug ? `#/schedules/${encodeURIComponent(item.slug)}/edit?${asked}` : "#/cost";
      return [link("Raise the limit", place, { kind: "small", "aria-label": `Raise the limit: ${item.title}` }), acknowledge, open];
    }
    case "brake":
      return [act("Release", "play", () => post(`/api/budget/${encodeURIComponent(item.agent)}/release`), "Released"), open];
    case "agent":
      return [button("Test", () => test(item.agent), { kind: "small", symbol: "play", label: `Test: ${item.title}` }), open];
    default:
      return [acknowledge, open];
  }
}

/** Test an agent, and show the run that does. */
const test = (agent) =>
  attempt(async () => {
    const { runId } = await post(`/api/agents/${encodeURIComponent(agent)}/test`);
    location.hash = `#/runs/${runId}`;
  }, `${agent}: test requested`);

/** Nothing is approved unseen: show the proposal, with invisible characters written out, and ask. */
async function isReviewed(item) {
  const { approvals } = await get("/api/approvals");
  const proposal = approvals.find(({ id }) => id === item.approvalId);
  if (!proposal) return false;
  const differences = proposal.changes.map(({ field, old, new: now }) => `${field}: ${JSON.stringify(old)} → ${JSON.stringify(now)}`);
  const all = { create: JSON.stringify(proposal.definition, null, 2), edit: differences.join("\n"), run: proposal.note ?? "" }[proposal.change];
  const proposed = h("pre", { class: "text", tabindex: 0 }, quoted(written(all)));
  return confirm(`Approve ${item.title}?`, [`The agent ${item.agent} proposed:`, proposed], "Approve", "Decide later", { kind: "primary" });
}

/** An item as a row of the list. */
export function attentionRow(item, changed) {
  return h(
    "li",
    { class: "attention", data: { kind: item.kind, level: item.level } },
    mark(MARKS[item.kind] ?? "unknown"),
    h(
      "div",
      { class: "words" },
      h(
        "h3",
        null,
        h("a", { href: placeOfItem(item) }, quoted(item.title)),
        h("span", { class: "kind" }, WORDS[item.kind] ?? item.kind),
        item.at ? when(item.at) : null,
      ),
      h("p", null, quoted(localised(item.sentence))),
      item.cure ? h("p", { class: "soft small" }, quoted(localised(item.cure))) : null,
      h("div", { class: "row acts" }, buttons(item, changed).filter(Boolean)),
    ),
  );
}
