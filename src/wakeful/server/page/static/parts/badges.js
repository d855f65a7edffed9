// Counts in the navigation: unread messages, dead letters, proposals.

import { get, has } from "../lib/api.js";
import { h, say, throttled } from "../lib/dom.js";

/** Keep the counts of these navigation entries (by name) up to date. */
export function keepBadges(stream, places) {
  const look = throttled(async () => {
    try {
      if (await has("/api/inbox")) set(places.inbox, (await get("/api/inbox", { limit: 1 })).unread, "unread");
      if (await has("/api/approvals"))
        set(places.approvals, (await get("/api/approvals")).approvals.length, "waiting for approval");
      if (await has("/api/channels")) {
        const data = await get("/api/channels");
        set(
          places.outbox,
          data.channels.reduce((sum, channel) => sum + channel.dead, 0),
          "dead letters",
        );
      }
    } catch {
      // The next event retries.
    }
  }, 2_000);
  stream.hear((events) => {
    if (events.some((event) => ["deliveries", "inbox", "schedules", "reset"].includes(event.stream))) look();
  });
  for (const name of ["inbox", "approvals"]) addEventListener(name, look);
  look();
}

function set(place, number, words) {
  let badge = place.querySelector(".badge");
  if (!badge) place.append((badge = h("span", { class: "badge" })));
  badge.classList.toggle("hidden", !number);
  say(badge, number > 99 ? "99+" : String(number));
  badge.setAttribute("aria-label", `${number} ${words}`);
}
