// The outbox: pending, delivered and undeliverable messages.

import { ask, get, post } from "../lib/api.js";
import { fill, h, quoted } from "../lib/dom.js";
import { has } from "../lib/routes.js";
import { short } from "../lib/text.js";
import { when } from "../lib/time.js";
import { attempt, confirm } from "../parts/dialogs.js";
import { chip } from "../parts/marks.js";
import { button, choices, empty, facts, head, notBuilt, panel } from "../parts/elements.js";

const WORDS =
  "Every message is stored before it is sent. A message that cannot be delivered after several attempts stays here as a dead letter.";
const LOOKS = { pending: "waiting", delivered: "succeeded", dead: "failed", discarded: "skipped" };
const HELD_MAX = 300;

export default async function outbox(visit) {
  if (!(await has("/api/deliveries")))
    return { title: "Outbox", element: h("div", { class: "stack" }, head("Outbox"), panel(null, notBuilt(WORDS))) };
  let status = visit.query.get("status") ?? "";
  let rows = [];
  let next = null;
  const open = new Set();
  const list = h("div");
  const more = button("Older", () => older().catch(visit.ignore));
  const page = (cursor) => get("/api/deliveries", { status, cursor, limit: 50 }, visit.signal);
  const again = (action, words) => attempt(action, words).then(() => load().catch(visit.ignore));
  const discard = async (one) => {
    if (await confirm("Discard this message?", "It will not be sent, and there is no other copy.", "Discard"))
      again(() => ask("DELETE", `/api/deliveries/${one.id}`), "Discarded");
  };
  const row = (one) => {
    const item = h(
      "details",
      {
        class: "run",
        open: open.has(one.id),
        data: { delivery: one.id },
        ontoggle: () => (item.open ? open.add(one.id) : open.delete(one.id)),
      },
      h(
        "summary",
        null,
        chip(LOOKS[one.status] ?? "unknown", { words: one.status === "dead" ? "dead letter" : one.status }),
        quoted(short(one.text, 160), { class: "cut wide" }),
        quoted([one.channel, one.to].filter(Boolean).join(" → "), { class: "soft small" }),
        when(one.enqueuedAt),
      ),
      h(
        "div",
        { class: "inside" },
        one.lastError ? h("div", { class: "note bad" }, quoted(one.lastError)) : null,
        h("pre", { class: "text" }, quoted(one.text)),
        facts([
          ["Delivery", quoted(String(one.id), { class: "mono" })],
          ["Attempts", one.attempts],
          ["Next attempt", one.nextAttemptAt ? when(one.nextAttemptAt) : null],
          ["From run", one.runId ? h("a", { href: `#/runs/${one.runId}` }, `run ${one.runId}`) : null],
        ]),
        one.status === "delivered"
          ? null
          : h(
              "div",
              { class: "row" },
              button(
                "Send again",
                () => again(() => post(`/api/deliveries/${one.id}/retry`), "Queued to be sent again"),
                { kind: "primary small", symbol: "again" },
              ),
              button("Discard", () => discard(one), { kind: "danger small", symbol: "trash" }),
            ),
      ),
    );
    return item;
  };
  const show = () => {
    fill(
      list,
      rows.length
        ? rows.map(row)
        : empty(
            "out",
            status === "dead" ? "No dead letters" : "No messages yet",
            "A schedule with a channel delivers its reply there.",
            { command: 'wakeful add standup --cron "0 9 * * 1-5" --prompt "Summarise yesterday" --deliver phone' },
          ),
    );
    more.classList.toggle("hidden", next === null || next === undefined);
  };
  const load = async () => {
    const found = await page(null);
    rows = found.deliveries;
    next = found.next;
    show();
  };
  const older = async () => {
    const found = await page(next);
    rows = [...rows, ...found.deliveries].slice(-HELD_MAX);
    next = found.next;
    show();
  };
  await visit.keep(["deliveries"], load);
  const filter = choices(
    "Status",
    [
      ["", "All"],
      ["pending", "Pending"],
      ["dead", "Dead letters"],
      ["delivered", "Delivered"],
    ],
    status,
    (chosen) => {
      status = chosen;
      load().catch(visit.ignore);
    },
  );
  return {
    title: "Outbox",
    element: h(
      "div",
      { class: "stack" },
      head("Outbox", WORDS),
      h("div", null, filter),
      panel(null, list),
      h("div", null, more),
    ),
  };
}
