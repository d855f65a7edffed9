// The messages of a workflow's topics: filtered by topic, status and consumer; skipped and replayed.

import { get, has, post } from "../lib/api.js";
import { fill, h, quoted } from "../lib/dom.js";
import { count, short } from "../lib/text.js";
import { when } from "../lib/time.js";
import { attempt } from "./dialogs.js";
import { button, empty } from "./elements.js";

const STATUSES = ["pending", "reserved", "consumed", "skipped"];
const PAGE = 50;
const REPLAY = "/api/workflows/{id}/topics/{topic}/replay";

/** The list, and `load`, which shows the topics and consumers of the workflow. */
export function topicMessages(visit, path) {
  const option = (value, words = value) => h("option", { value }, words);
  const [topic, consumer] = ["Topic", "Consumer"].map((label) => h("select", { "aria-label": label }));
  const status = h(
    "select",
    { "aria-label": "Status" },
    option("", "any status"),
    STATUSES.map((status) => option(status)),
  );
  status.value = "pending";
  const [list, acts] = [h("div"), h("div", { class: "row", role: "status" })];
  const selected = new Map(); // message and consumer → message
  let rows = [];
  let next = null;
  let canReplay = false;
  let known = "";

  const ask = (cursor) =>
    get(
      path(`/topics/${encodeURIComponent(topic.value)}/messages`),
      { limit: PAGE, status: status.value, consumer: consumer.value, cursor },
      visit.signal,
    );
  const show = async () => {
    if (!topic.value) return fill(list, empty("flow", "No topic", "A consumer subscribes to topics."));
    ({ messages: rows, next } = await ask(null));
    for (const id of selected.keys()) if (!rows.some((message) => key(message) === id)) selected.delete(id);
    draw();
  };
  const more = async () => {
    const page = await ask(next);
    rows.push(...page.messages);
    next = page.next;
    draw();
  };
  const again = () => show().catch(visit.ignore);

  /** Skip or replay what is ticked, for the consumer of each. */
  const act = async (deed, words) => {
    const byConsumer = Object.groupBy(selected.values(), (message) => message.consumer ?? "");
    await attempt(async () => {
      for (const [name, some] of Object.entries(byConsumer))
        await post(path(`/topics/${encodeURIComponent(topic.value)}/${deed}`), {
          ids: some.map((message) => message.id),
          ...(name ? { consumer: name } : {}),
        });
    }, `${count(selected.size, "message")} ${words}`);
    selected.clear();
    again();
  };
  const showActs = () => {
    const all = [...selected.values()];
    const [isPending, isSkipped] = [all.every((message) => message.status === "pending"), all.every((message) => message.status === "skipped")];
    fill(
      acts,
      all.length ? h("span", { class: "soft small" }, `${count(all.length, "message")} selected`) : null,
      all.length && isPending ? button("Skip", () => act("skip", "skipped"), { kind: "small", label: "Skip the selected messages" }) : null,
      all.length && isSkipped && canReplay ? button("Replay", () => act("replay", "replayed"), { kind: "small", symbol: "again", label: "Replay the selected messages" }) : null,
    );
  };
  const row = (message) =>
    h(
      "li",
      { data: { message: message.id } },
      h("input", {
        type: "checkbox",
        "aria-label": `Select ${message.id}`,
        checked: selected.has(key(message)),
        disabled: message.status !== "pending" && !(message.status === "skipped" && canReplay),
        onchange: (event) => {
          event.target.checked ? selected.set(key(message), message) : selected.delete(key(message));
          showActs();
        },
      }),
      h(
        "details",
        { class: "message-details" },
        h(
          "summary",
          null,
          h("b", null, quoted(message.id)),
          h("span", { class: "soft small cut" }, quoted(short(JSON.stringify(message.payload), 90))),
          h("span", { class: "small" }, message.status, message.consumer ? [" for ", quoted(message.consumer)] : " for no consumer", message.attempt > 1 ? `, attempt ${message.attempt}` : ""),
          when(message.publishedAt),
        ),
        h("pre", { class: "text", tabindex: 0 }, quoted(JSON.stringify(message.payload, null, 2))),
        h(
          "p",
          { class: "soft small" },
          message.publishedBy ? ["published by ", h("a", { href: `#/runs/${message.publishedBy}` }, `run ${message.publishedBy}`)] : "published from outside",
          message.runId ? ["; taken by ", h("a", { href: `#/runs/${message.runId}` }, `run ${message.runId}`)] : null,
        ),
      ),
    );
  const draw = () => {
    fill(
      list,
      rows.length
        ? h("ul", { class: "messages", "aria-label": "Messages" }, rows.map(row))
        : empty("flow", "No messages", "No messages with these filters."),
      next ? button("Later messages", () => more().catch(visit.ignore)) : null,
    );
    showActs();
  };

  for (const control of [topic, status, consumer])
    control.addEventListener("change", () => {
      selected.clear();
      again();
    });
  return {
    element: h("div", { class: "body stack" }, h("div", { class: "row filters" }, topic, status, consumer), acts, list),
    load: async ({ topics, consumers }) => {
      canReplay = await has(REPLAY);
      const names = [Object.keys(topics ?? {}), Object.keys(consumers ?? {})];
      if (JSON.stringify(names) !== known) {
        known = JSON.stringify(names);
        const chosen = [topic.value, consumer.value];
        fill(topic, names[0].map((name) => option(name)));
        fill(consumer, option("", "any consumer"), names[1].map((name) => option(name)));
        if (names[0].includes(chosen[0])) topic.value = chosen[0];
        if (names[1].includes(chosen[1])) consumer.value = chosen[1];
      }
      if (!list.querySelector("details[open]")) await show(); // an open message stays as it is
    },
  };
}

const key = (message) => `${message.seq} ${message.consumer ?? ""}`;
