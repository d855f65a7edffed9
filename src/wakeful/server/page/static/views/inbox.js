// The inbox: messages that have no other channel.

import { ask, get, post } from "../lib/api.js";
import { fill, h, quoted } from "../lib/dom.js";
import { has } from "../lib/routes.js";
import { placeOf } from "../lib/text.js";
import { when } from "../lib/time.js";
import { attempt } from "../parts/dialogs.js";
import { button, choices, empty, head, notBuilt, panel } from "../parts/elements.js";

const WORDS =
  "A built-in channel: messages without another channel are kept here, so that nothing is lost.";
const BEGIN = 'wakeful add morning --times 08:00 --prompt "What should I know today?" --deliver inbox';
const PAGE = 50;
const HELD_MAX = 300;

export default async function inbox(visit) {
  if (!(await has("/api/inbox"))) {
    return { title: "Inbox", element: h("div", { class: "stack" }, head("Inbox"), panel(null, notBuilt(WORDS))) };
  }
  let isUnread = false;
  let items = [];
  let next = null;
  const list = h("div");
  const more = button("Older", () => older().catch(visit.ignore));
  const page = (cursor) => get("/api/inbox", { unread: isUnread || null, limit: PAGE, cursor }, visit.signal);
  const act = async (action) => {
    await attempt(action);
    dispatchEvent(new Event("inbox")); // refresh the unread count
    await load().catch(visit.ignore);
  };

  const message = (one) =>
    h(
      "article",
      { class: one.readAt ? "message" : "message unread", data: { item: one.id } },
      h(
        "div",
        { class: "row small soft" },
        when(one.at),
        one.slug ? h("a", { href: placeOf(one.slug) }, quoted(one.slug)) : null,
        one.runId ? h("a", { href: `#/runs/${one.runId}` }, `run ${one.runId}`) : null,
        button(
          one.readAt ? "Unread" : "Read",
          () => act(() => post(`/api/inbox/${one.id}/read`, { read: !one.readAt })),
          {
            kind: "small quiet",
          },
        ),
        button("", () => act(() => ask("DELETE", `/api/inbox/${one.id}`)), {
          kind: "small quiet",
          symbol: "trash",
          label: "Remove",
        }),
      ),
      h("p", null, quoted(one.text)),
    );
  const show = () => {
    const none = isUnread ? "No unread messages" : "No messages yet";
    fill(list, items.length ? items.map(message) : empty("inbox", none, WORDS, { command: isUnread ? null : BEGIN }));
    more.classList.toggle("hidden", next === null);
  };
  const load = async () => {
    const response = await page(null);
    items = response.items;
    next = response.next;
    show();
  };
  const older = async () => {
    const response = await page(next);
    items = [...items, ...response.items].slice(-HELD_MAX);
    next = response.next;
    show();
  };
  await visit.keep(["inbox", "deliveries"], load);
  const filter = choices(
    "Show",
    [
      ["all", "All"],
      ["unread", "Unread"],
    ],
    "all",
    (chosen) => {
      isUnread = chosen === "unread";
      load().catch(visit.ignore);
    },
  );
  const element = h("div", { class: "stack" }, head("Inbox", WORDS, filter), panel(null, list), h("div", null, more));
  return { title: "Inbox", element };
}
