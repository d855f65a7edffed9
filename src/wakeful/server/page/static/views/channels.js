// Channels, and where a person was last heard from.

import { get, has, settingsFile } from "../lib/api.js";
import { fill, h, quoted } from "../lib/dom.js";
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
  const file = await settingsFile();
  const list = h("div", { class: "cards" });
  const none = h("div");
  const card = (channel, last) => {
    const dead = channel.dead ? h("a", { href: "#/outbox?status=dead" }, count(channel.dead, "message")) : "none";
    const isLast = last !== null && last.channel === channel.name;
    return panel(
      quoted(channel.name),
      { actions: h("span", { class: "soft small" }, quoted(channel.type)) },
      body(
        channel.incident ? h("div", { class: "note bad" }, quoted(channel.incident)) : null,
        facts([
          ["To", channel.to ? quoted(channel.to) : null],
          ["Defined in", channel.source === "settings" ? quoted(`${file}, [channels.${channel.name}]`) : quoted(channel.source)],
          ["Inbound", channel.inbound ? "yes: a message there wakes the agent" : null],
          ["Last interaction", isLast ? [last.to ? [quoted(last.to), " "] : null, when(last.at)] : null],
          ["Pending", channel.pending],
          ["Undelivered", dead],
        ]),
      ),
    );
  };
  const load = async () => {
    const data = await get("/api/channels", {}, visit.signal);
    if (visit.isSame(data)) return;
    fill(
      list,
      data.channels.map((channel) => card(channel, data.last)),
    );
    const isBare = data.channels.every((channel) => channel.source === "built-in");
    fill(none, isBare ? panel(null, empty("channel", "No channels configured yet", WORDS, { command: BEGIN, file })) : null);
  };
  await visit.keep(["deliveries", "incidents", "messages"], load);
  return { title: "Channels", element: h("div", { class: "stack" }, head("Channels", WORDS), list, none) };
}
