// The outbox: pending, delivered and undeliverable messages.

import { ask, get, has, post } from "../lib/api.js";
import { fill, h, quoted } from "../lib/dom.js";
import { preview } from "../lib/text.js";
import { when } from "../lib/time.js";
import { attempt, confirm } from "../parts/dialogs.js";
import { chip } from "../parts/marks.js";
import { button, choices, empty, facts, head, notBuilt, panel } from "../parts/elements.js";

const WORDS =
  "Every message is stored before it is sent. A message that cannot be delivered after several attempts stays here as undelivered.";
const LOOKS = { pending: "waiting", delivered: "succeeded", dead: "failed", discarded: "skipped" };
const HELD_MAX = 300;

export default async function outbox(visit) {
  if (!(await has("/api/deliveries")))
    return { title: "Outbox", element: h("div", { class: "stack" }, head("Outbox"), panel(null, notBuilt(WORDS))) };
  let status = visit.query.get("status") ?? "";
  let rows = [];
  let next = null;
  const asked = visit.query.get("open");
  const open = new Set(asked ? [asked] : []);
  const list = h("div");
  const more = button("Older", () => older().catch(visit.ignore));
  const page = (cursor) => get("/api/deliveries", { status, cursor, limit: 50 }, visit.signal);
  const again = (action, words) => attempt(action, words).then(() => load().catch(visit.ignore));
  const discard = async (delivery) => {
    if (await confirm("Discard this message?", "It will not be sent, and there is no other copy.", "Discard", "Keep the message"))
      again(() => ask("DELETE", `/api/deliveries/${delivery.id}`), "Discarded");
  };
  const row = (delivery) => {
    const item = h(
      "details",
      {
        class: "run",
        open: open.has(delivery.id),
        data: { delivery: delivery.id },
        ontoggle: () => (item.open ? open.add(delivery.id) : open.delete(delivery.id)),
      },
      h(
        "summary",
        null,
        chip(LOOKS[delivery.status] ?? "unknown", { words: delivery.status === "dead" ? "undelivered" : delivery.status }),
        quoted(preview(delivery.text, 160), { class: "cut wide" }),
        quoted([delivery.channel, delivery.to].filter(Boolean).join(" → "), { class: "soft small" }),
        when(delivery.enqueuedAt),
      ),
      h(
        "div",
        { class: "inside" },
        delivery.lastError ? h("div", { class: "note bad" }, quoted(delivery.lastError)) : null,
        h("pre", { class: "text" }, quoted(delivery.text)),
        facts([
          ["Delivery", quoted(String(delivery.id), { class: "mono" })],
          ["Attempts", delivery.attempts],
          ["Next attempt", delivery.nextAttemptAt ? when(delivery.nextAttemptAt) : null],
          ["From run", delivery.runId ? h("a", { href: `#/runs/${delivery.runId}` }, `run ${delivery.runId}`) : null],
        ]),
        delivery.status === "delivered"
          ? null
          : h(
              "div",
              { class: "row" },
              button(
                "Send again",
                () => again(() => post(`/api/deliveries/${delivery.id}/retry`), "Queued to be sent again"),
                { kind: "primary small", symbol: "again" },
              ),
              button("Discard", () => discard(delivery), { kind: "danger small", symbol: "trash" }),
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
            status === "dead" ? "No undelivered messages" : "No messages yet",
            "A schedule with a channel delivers its reply there.",
            { command: 'wakeful add standup --cron "0 9 * * 1-5" --prompt "Summarise yesterday" --deliver phone' },
          ),
    );
    more.classList.toggle("hidden", next === null || next === undefined);
  };
  const load = async () => {
    const batch = await page(null);
    if (visit.isSame(status, batch)) return;
    rows = batch.deliveries;
    next = batch.next;
    show();
  };
  const older = async () => {
    const batch = await page(next);
    rows = [...rows, ...batch.deliveries].slice(-HELD_MAX);
    next = batch.next;
    show();
  };
  await visit.keep(["deliveries"], load);
  const filter = choices(
    "Status",
    [
      ["", "All"],
      ["pending", "Pending"],
      ["dead", "Undelivered"],
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
      h("div", { class: "filters" }, filter),
      panel(null, list),
      h("div", null, more),
    ),
    ready: () => asked && list.querySelector(`[data-delivery="${CSS.escape(asked)}"]`)?.scrollIntoView({ block: "center" }),
  };
}
