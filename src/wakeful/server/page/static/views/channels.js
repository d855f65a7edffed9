// Channels, and the last interaction.

import { get } from "../lib/api.js";
import { fill, h, quoted } from "../lib/dom.js";
import { has } from "../lib/routes.js";
import { count } from "../lib/text.js";
import { when } from "../lib/time.js";
import { body, empty, facts, head, notBuilt, panel } from "../parts/elements.js";

const WORDS =
  "A channel delivers messages to a person: Telegram, a webhook, the console, the inbox on this page, and over a hundred other services.";
const BEGIN = '[channels.phone]\ntype = "telegram"\ntoken = {env = "TELEGRAM_TOKEN"}\nchat = "12345"';

export default async function channels(visit) {
  if (!(await has("/api/channels"))) {
    return { title: "Channels", element: h("div", { class: "stack" }, head("Channels"), panel(null, notBuilt(WORDS))) };
  }
  const list = h("div", { class: "cards" });
  const none = h("div");
  const card = (one, last) => {
    const dead = one.dead ? h("a", { href: "#/outbox?status=dead" }, count(one.dead, "dead letter")) : "none";
    const isLast = last !== null && last.channel === one.name;
    return panel(
      quoted(one.name),
      { actions: h("span", { class: "soft small" }, quoted(one.type)) },
      body(
        one.incident ? h("div", { class: "note bad" }, quoted(one.incident)) : null,
        isLast
          ? h(
              "div",
              { class: "note" },
              h("span", null, "Last interaction: ", quoted(last.to ?? "here"), " ", when(last.at)),
            )
          : null,
        facts([
          ["To", one.to ? quoted(one.to) : null],
          ["Defined in", quoted(one.source)],
          ["Inbound", one.inbound ? "yes: a message there wakes the agent" : null],
          ["Pending", one.pending],
          ["Undeliverable", dead],
        ]),
      ),
    );
  };
  const load = async () => {
    const data = await get("/api/channels", {}, visit.signal);
    fill(
      list,
      data.channels.map((one) => card(one, data.last)),
    );
    const isBare = data.channels.every((one) => one.source === "built-in");
    fill(none, isBare ? panel(null, empty("channel", "No channels configured yet", WORDS, { command: BEGIN })) : null);
  };
  await visit.keep(["deliveries", "incidents", "messages"], load);
  return { title: "Channels", element: h("div", { class: "stack" }, head("Channels", WORDS), list, none) };
}
