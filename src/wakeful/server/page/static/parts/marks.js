// The mark of an outcome: a shape and a colour, so that colour is not the only cue. In a 16 by 16 box.

import { h, s } from "../lib/dom.js";
import { outcomeWords } from "../lib/text.js";
import { at, length, wall } from "../lib/time.js";

export const SHAPES = {
  succeeded: "M8 3a5 5 0 1 0 0 10A5 5 0 1 0 8 3Z",
  failed: "M4.4 2.6 8 6.2 11.6 2.6 13.4 4.4 9.8 8 13.4 11.6 11.6 13.4 8 9.8 4.4 13.4 2.6 11.6 6.2 8 2.6 4.4Z",
  timedOut: "M8 2 14.4 13.4H1.6Z",
  unconfirmed: "M8 1.6 14.4 8 8 14.4 1.6 8ZM8 4.6 4.6 8 8 11.4 11.4 8Z",
  unknown: "M3 3H13V13H3ZM5 5V11H11V5ZM7 7H9V9H7Z",
  cancelled: "M3 3H13V13H3ZM5 5V11H11V5Z",
  skipped: "M3 7H13V9H3Z",
  missed: "M8 2a6 6 0 1 0 0 12A6 6 0 1 0 8 2ZM8 4a4 4 0 0 1 0 8A4 4 0 0 1 8 4ZM6 7.2H10V8.8H6Z",
  running: "M4 2.4 13.6 8 4 13.6Z",
  waiting: "M4 3H7V13H4ZM9 3H12V13H9Z",
  planned: "M8 3.4a4.6 4.6 0 1 0 0 9.2A4.6 4.6 0 1 0 8 3.4ZM8 5a3 3 0 1 1 0 6A3 3 0 1 1 8 5Z",
  paused: "M4 3H7V13H4ZM9 3H12V13H9Z",
  disabled: "M8 2a6 6 0 1 0 0 12A6 6 0 1 0 8 2ZM5 7H11V9H5Z",
  invalid: "M7 2H9V10H7ZM7 12H9V14H7Z",
  done: "M3 8.4 4.6 6.8 6.8 9 11.6 4.2 13.2 5.8 6.8 12.2Z",
  idle: "M8 5.4a2.6 2.6 0 1 0 0 5.2A2.6 2.6 0 1 0 8 5.4Z", // nothing runs, and nothing is wrong
};

/** Worst first: the mark that represents overlapping ones. */
export const GRAVITY = [
  "failed",
  "timedOut",
  "unknown",
  "missed",
  "unconfirmed",
  "running",
  "waiting",
  "cancelled",
  "skipped",
  "succeeded",
  "planned",
];

/** The shape alone. */
export function mark(outcome) {
  const shape = s("path", { d: SHAPES[outcome] ?? SHAPES.unknown, "fill-rule": "evenodd" });
  return s("svg", { viewBox: "0 0 16 16", class: "mark", data: { o: outcome }, "aria-hidden": true }, shape);
}

/** Shape and word. */
export function chip(outcome, { boxed = false, words = outcomeWords(outcome) } = {}) {
  return h("span", { class: boxed ? "chip boxed" : "chip", data: { o: outcome } }, mark(outcome), words);
}

/** The outcome of a run in one line. */
export function runWords(run) {
  const words = [outcomeWords(run.outcome)];
  if (run.reason) words.push(`(${run.reason})`);
  if (run.count > 1) words.push(`${run.count.toLocaleString()} instants`);
  const [started, ended] = [at(run.startedAt), at(run.endedAt)];
  if (started !== null && ended !== null) words.push(`in ${length(ended - started)}`);
  return words.join(" ");
}

/** The last runs as marks, oldest first, with a sentence for screen readers. */
export function strip(runs) {
  if (!runs?.length) return h("span", { class: "faint small" }, "no run yet");
  const oldestFirst = [...runs].reverse();
  const counted = Object.entries(Object.groupBy(oldestFirst, (run) => run.outcome)).map(
    ([outcome, some]) => `${some.length} ${outcomeWords(outcome)}`,
  );
  const shapes = oldestFirst.map((run) => {
    const shape = mark(run.outcome);
    shape.append(s("title", null, `${wall(at(run.plannedAt))}: ${runWords(run)}`));
    return shape;
  });
  return h(
    "span",
    { class: "strip", role: "img", "aria-label": `Last ${oldestFirst.length}: ${counted.join(", ")}` },
    shapes,
  );
}
