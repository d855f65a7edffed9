// The inbox: messages that have no other channel.

import { ask, get, has, post } from "../lib/api.js";
import { fill, h, quoted } from "../lib/dom.js";
import { placeOf } from "../lib/text.js";
import { when } from "../lib/time.js";
import { attempt } from "../parts/dialogs.js";
import { button, choices, empty, head, notBuilt, panel } from "../parts/elements.js";

const WORDS =
  "A built-in channel: messages with no other channel are kept here, so that nothing is lost.";
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

  const message = (item) =>
    h(
      "article",
      { class: item.readAt ? "message" : "message unread", data: { item: item.id } },
      h(
        "div",
        { class: "row small soft" },
        when(item.at),
        item.slug ? h("a", { href: placeOf(item.slug) }, quoted(item.slug)) : null,
        item.runId ? h("a", { href: `#/runs/${item.runId}` }, `run ${item.runId}`) : null,
        h(
          "span",
          { class: "together" },
          button(
            item.readAt ? "Mark unread" : "Mark read",
            () => act(() => post(`/api/inbox/${item.id}/read`, { read: !item.readAt })),
            {
              kind: "small quiet",
            },
          ),
          button("", () => act(() => ask("DELETE", `/api/inbox/${item.id}`)), {
            kind: "small quiet",
            symbol: "trash",
            label: "Remove",
          }),
        ),
      ),
      h("p", null, quoted(item.text)),
    );
  const show = () => {
    const none = isUnread ? "No unread messages" : "No messages yet";
    fill(list, items.length ? items.map(message) : empty("inbox", none, WORDS, { command: isUnread ? null : BEGIN }));
    more.classList.toggle("hidden", next === null);
  };
  const load = async () => {
    const response = await page(null);
    if (visit.isSame(isUnread, response)) return;
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
  const readAll = button("Mark all read", () => act(() => post("/api/inbox/read")), { symbol: "check" });
  const element = h("div", { class: "stack" }, head("Inbox", WORDS, readAll, filter), panel(null, list), h("div", null, more));
  return { title: "Inbox", element };
}
