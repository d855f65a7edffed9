// The inbox: what was said to you and went nowhere else.

import { ask, get, post } from "../lib/api.js";
import { fill, h, quoted } from "../lib/dom.js";
import { has } from "../lib/parts-there.js";
import { when } from "../lib/time.js";
import { attempt } from "../parts/asking.js";
import { button, empty, head, notBuilt, panel } from "../parts/small.js";

const WORDS =
  "A channel that is always there: whatever has no other way to you is kept here, so that nothing is dropped.";

export default async function inbox(visit) {
  const isOwn = await has("/api/inbox");
  if (!isOwn && !(await has("/api/deliveries")))
    return { title: "Inbox", element: h("div", { class: "stack" }, head("Inbox"), panel(null, notBuilt(WORDS))) };
  const canRemove = await has("/api/inbox/{id}");
  const canRead = await has("/api/inbox/{id}/read");
  const list = h("div");
  const load = async () => {
    const told = isOwn
      ? await get("/api/inbox", {}, visit.signal)
      : await get("/api/deliveries", { status: "delivered" }, visit.signal);
    const found = (told.messages ?? told.inbox ?? told.deliveries ?? []).filter(
      (one) => isOwn || one.channel === "inbox",
    );
    const act = (action) => attempt(action).then(() => load().catch(visit.ignore));
    fill(
      list,
      found.length
        ? found.map((one) =>
            h(
              "article",
              { class: "message" },
              h(
                "div",
                { class: "row small soft" },
                when(one.at ?? one.receivedAt ?? one.deliveredAt ?? one.enqueuedAt),
                one.slug ? h("a", { href: `#/schedules/${one.slug}` }, quoted(one.slug)) : null,
                one.runId ? h("a", { href: `#/runs/${one.runId}` }, `run ${one.runId}`) : null,
                one.readAt === null && canRead
                  ? button("Mark as read", () => act(() => post(`/api/inbox/${one.id}/read`)), { kind: "small quiet" })
                  : null,
                canRemove
                  ? button("", () => act(() => ask("DELETE", `/api/inbox/${one.id}`)), {
                      kind: "small quiet",
                      symbol: "trash",
                      label: "Remove",
                    })
                  : null,
              ),
              h("p", null, quoted(one.text)),
            ),
          )
        : empty("inbox", "Nothing for you yet", WORDS, {
            command: 'wakeful add morning --times 08:00 --prompt "What should I know today?" --deliver inbox',
          }),
    );
  };
  await visit.keep(["inbox", "deliveries", "delivery", "outbox"], load);
  return { title: "Inbox", element: h("div", { class: "stack" }, head("Inbox", WORDS), panel(null, list)) };
}
