// Channels: the ways to people, and where each was last heard from.

import { get } from "../lib/api.js";
import { fill, h, quoted } from "../lib/dom.js";
import { has } from "../lib/parts-there.js";
import { when } from "../lib/time.js";
import { plainFacts } from "../parts/anything.js";
import { body, empty, head, notBuilt, panel } from "../parts/small.js";

const WORDS =
  "A channel is a way to a person: Telegram, a webhook, the console, this page's inbox, and a hundred services more.";
const BEGIN = '[channels.phone]\ntype = "telegram"\ntoken = {env = "TELEGRAM_TOKEN"}\nchat = "12345"';

export default async function channels(visit) {
  if (!(await has("/api/channels")))
    return { title: "Channels", element: h("div", { class: "stack" }, head("Channels"), panel(null, notBuilt(WORDS))) };
  const list = h("div", { class: "cards" });
  const none = h("div");
  const load = async () => {
    const told = await get("/api/channels", {}, visit.signal);
    const last = told.lastInteraction ?? told.last ?? null;
    fill(
      list,
      told.channels.map((one) =>
        panel(
          quoted(one.name),
          { actions: h("span", { class: "soft small" }, one.type ?? "") },
          body(
            last && last.channel === one.name
              ? h(
                  "div",
                  { class: "note" },
                  h(
                    "span",
                    null,
                    "Last heard from ",
                    last.to ? quoted(last.to) : "here",
                    " ",
                    last.at ? when(last.at) : null,
                  ),
                )
              : null,
            plainFacts(one, ["name", "type"]),
          ),
        ),
      ),
    );
    fill(
      none,
      told.channels.length ? null : panel(null, empty("channel", "No channel yet", WORDS, { command: BEGIN })),
    );
  };
  await visit.keep(["channels", "deliveries", "delivery", "settings"], load);
  return { title: "Channels", element: h("div", { class: "stack" }, head("Channels", WORDS), list, none) };
}
