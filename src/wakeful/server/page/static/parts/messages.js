// The messages of a workflow's topics: filtered by topic, status and consumer; skipped and replayed.

import { get, post } from "../lib/api.js";
import { fill, h, quoted } from "../lib/dom.js";
import { has } from "../lib/routes.js";
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
    STATUSES.map((one) => option(one)),
  );
  status.value = "pending";
  const [list, acts] = [h("div"), h("div", { class: "row", role: "status" })];
  const ticked = new Map(); // message and consumer → message
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
    for (const id of ticked.keys()) if (!rows.some((one) => key(one) === id)) ticked.delete(id);
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
    const byConsumer = Object.groupBy(ticked.values(), (one) => one.consumer ?? "");
    await attempt(async () => {
      for (const [name, some] of Object.entries(byConsumer))
        await post(path(`/topics/${encodeURIComponent(topic.value)}/${deed}`), {
          ids: some.map((one) => one.id),
          ...(name ? { consumer: name } : {}),
        });
    }, `${count(ticked.size, "message")} ${words}`);
    ticked.clear();
    again();
  };
  const showActs = () => {
    const all = [...ticked.values()];
    const [isPending, isSkipped] = [all.every((one) => one.status === "pending"), all.every((one) => one.status === "skipped")];
    fill(
      acts,
      all.length ? h("span", { class: "soft small" }, `${count(all.length, "message")} selected`) : null,
      all.length && isPending ? button("Skip", () => act("skip", "skipped"), { kind: "small", label: "Skip the selected messages" }) : null,
      all.length && isSkipped && canReplay ? button("Replay", () => act("replay", "replayed"), { kind: "small", symbol: "again", label: "Replay the selected messages" }) : null,
    );
  };
  const row = (one) =>
    h(
      "li",
      { data: { message: one.id } },
      h("input", {
        type: "checkbox",
        "aria-label": `Tick ${one.id}`,
        checked: ticked.has(key(one)),
        disabled: one.status !== "pending" && !(one.status === "skipped" && canReplay),
        onchange: (event) => {
          event.target.checked ? ticked.set(key(one), one) : ticked.delete(key(one));
          showActs();
        },
      }),
      h(
        "details",
        { class: "message-details" },
        h(
          "summary",
          null,
          h("b", null, quoted(one.id)),
          h("span", { class: "soft small cut" }, quoted(short(JSON.stringify(one.payload), 90))),
          h("span", { class: "small" }, one.status, one.consumer ? [" for ", quoted(one.consumer)] : " for no consumer", one.attempt > 1 ? `, attempt ${one.attempt}` : ""),
          when(one.publishedAt),
        ),
        h("pre", { class: "text", tabindex: 0 }, quoted(JSON.stringify(one.payload, null, 2))),
        h(
          "p",
          { class: "soft small" },
          one.publishedBy ? ["published by ", h("a", { href: `#/runs/${one.publishedBy}` }, `run ${one.publishedBy}`)] : "published from outside",
          one.runId ? ["; taken by ", h("a", { href: `#/runs/${one.runId}` }, `run ${one.runId}`)] : null,
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
      ticked.clear();
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

const key = (one) => `${one.seq} ${one.consumer ?? ""}`;
