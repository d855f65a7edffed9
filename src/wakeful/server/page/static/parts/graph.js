// Producers, topics and consumers of a workflow, left to right, with pending messages.

import { h, s } from "../lib/dom.js";
import { at, relative } from "../lib/time.js";
import { count, short } from "../lib/text.js";

const LOOKS = { active: "succeeded", paused: "paused", draft: "idle", ready: "waiting" };

/** The mark for a workflow's state. */
export const stateMark = (workflow) =>
  workflow.error ? "failed" : workflow.openRun ? "running" : (LOOKS[workflow.status] ?? "idle");

/** A workflow's state in words. */
export const stateWords = (workflow) =>
  workflow.error
    ? "stopped"
    : workflow.openRun
      ? `${workflow.openRun.phase}: ${workflow.openRun.handler}`
      : workflow.status;

const TALL = 52;
/** The sizes: how wide a node is, how far the columns are apart, and how many letters fit. */
const USUAL = { wide: 210, step: 310, letters: 24 };
const NARROW = { wide: 106, step: 125, letters: 12 };

/** The graph. Nodes of a kind share a column; a line is drawn for every publish and every subscription. */
export function graph(workflow) {
  const size = matchMedia("(max-width: 600px)").matches ? NARROW : USUAL;
  const producers = Object.entries(workflow.producers ?? {});
  const consumers = Object.entries(workflow.consumers ?? {});
  const names = [
    ...new Set([
      ...producers.flatMap(([, producer]) => producer.publishes ?? []),
      ...consumers.flatMap(([, consumer]) => [...(consumer.subscribe ?? []), ...(consumer.publishes ?? [])]),
      ...Object.keys(workflow.topics ?? {}),
    ]),
  ];
  const rows = Math.max(1, producers.length, names.length, consumers.length);
  const tall = rows * (TALL + 18) + 12;
  const y = (index, many) => 12 + ((rows - many) * (TALL + 18)) / 2 + index * (TALL + 18);
  const spots = {
    producer: new Map(producers.map(([name], index) => [name, [0, y(index, producers.length)]])),
    topic: new Map(names.map((name, index) => [name, [size.step, y(index, names.length)]])),
    consumer: new Map(consumers.map(([name], index) => [name, [2 * size.step, y(index, consumers.length)]])),
  };
  const edges = [
    ...producers.flatMap(([name, producer]) =>
      (producer.publishes ?? []).map((topic) => edge(size, spots.producer.get(name), spots.topic.get(topic))),
    ),
    ...consumers.flatMap(([name, consumer]) =>
      (consumer.subscribe ?? []).map((topic) => edge(size, spots.topic.get(topic), spots.consumer.get(name))),
    ),
    ...consumers.flatMap(([name, consumer]) =>
      (consumer.publishes ?? []).map((topic) => edge(size, spots.consumer.get(name), spots.topic.get(topic), true)),
    ),
  ];
  const parts = [count(producers.length, "producer"), count(names.length, "topic"), count(consumers.length, "consumer")];
  const words = `${parts.join(", ")}; ${names.map((name) => `${name}: ${pending(workflow, name)} pending`).join(", ")}`;
  return h(
    "div",
    { class: "table-wrap", tabindex: 0, role: "region", "aria-label": "Graph" },
    s(
      "svg",
      { class: size === NARROW ? "graph narrow" : "graph", viewBox: `0 0 ${2 * size.step + size.wide + 2} ${tall}`, role: "img", "aria-label": words },
      edges,
      producers.map(([name, producer]) =>
        node(
          size,
          spots.producer.get(name),
          name,
          producer.queued ? "queued" : producer.nextRun ? relative(at(producer.nextRun)) : "producer",
          state(workflow, name),
        ),
      ),
      names.map((name) => node(size, spots.topic.get(name), name, `${pending(workflow, name)} pending`, "topic")),
      consumers.map(([name, consumer]) =>
        node(
          size,
          spots.consumer.get(name),
          name,
          consumer.wakeAt ? `wakes ${relative(at(consumer.wakeAt))}` : consumer.dirty ? "has messages" : "consumer",
          state(workflow, name),
        ),
      ),
    ),
  );
}

const pending = (workflow, name) => Number(workflow.topics?.[name]?.pending ?? 0).toLocaleString();
const state = (workflow, name) =>
  workflow.openRun?.handler !== name ? "" : workflow.error || workflow.openRun.awaits ? "wrong" : "busy";

function node({ wide, letters }, [x, y], name, below, kind) {
  const inset = wide / 14;
  return s(
    "g",
    { class: `node ${kind}` },
    s("rect", { x: x + 1, y, width: wide, height: TALL, rx: kind === "topic" ? 26 : 10 }),
    s("text", { x: x + inset, y: y + 22 }, short(name, letters)),
    s("text", { x: x + inset, y: y + 40, class: "sub" }, below),
  );
}

/** A line with an arrowhead that shows the direction. */
function edge({ wide }, from, to, isBack = false) {
  const [x1, y1, x2, y2] = isBack
    ? [from[0], from[1] + TALL - 8, to[0] + wide, to[1] + TALL - 8]
    : [from[0] + wide, from[1] + TALL / 2, to[0], to[1] + TALL / 2];
  const bend = (x2 - x1) / 2;
  const back = isBack ? 8 : -8;
  return [
    s("path", { class: "edge", d: `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}` }),
    s("path", { class: "head", d: `M${x2} ${y2}l${back} -4v8z` }),
  ];
}
