// One schedule in the list.

import { h, quoted } from "../lib/dom.js";
import { actionWords, outcomeWords } from "../lib/text.js";
import { localised, when } from "../lib/time.js";
import { chip, strip } from "./marks.js";
import { button, link } from "./elements.js";

/** Whether a schedule fires by itself. */
export const isOn = (schedule) => schedule.enabled && schedule.status !== "paused";

const HEALTHS = {
  ok: ["succeeded", "ok"],
  failing: ["failed", "failing"],
  late: ["missed", "late"],
  waiting: ["waiting", "waiting"],
};

/** A schedule's health: its mark, and one word: ok, failing, late, waiting, running; or why it is off. */
export function stateOf(schedule) {
  if (schedule.approval === "pending") return ["waiting", "needs approval"];
  if (schedule.status === "invalid") return ["failed", "invalid"];
  if (schedule.health === "failing") return ["failed", { disabled: "disabled", done: "failed" }[schedule.status] ?? "failing"];
  if (schedule.status === "running") return ["running", "running"];
  if (schedule.health === "off") return [schedule.status, outcomeWords(schedule.status)];
  return HEALTHS[schedule.health];
}

/** The same as an element. */
export function stateChip(schedule, { boxed = false } = {}) {
  const [look, words] = stateOf(schedule);
  return chip(look, { boxed, words });
}

/** The row: state, action and timing, last runs, and buttons. */
export function scheduleRow(schedule, actions) {
  return h(
    "div",
    { class: "list-row", role: "listitem", data: { slug: schedule.slug } },
    h(
      "div",
      { class: "c-state", title: schedule.statusReason ?? schedule.lastError },
      stateChip(schedule),
    ),
    h(
      "div",
      { class: "name" },
      h("a", { class: "cut", href: `#/schedules/${schedule.slug}` }, quoted(schedule.slug)),
      quoted(actionWords(schedule), { class: "does cut" }),
    ),
    quoted(schedule.description?.replace(/, aligned to .*/, "") ?? "invalid definition", {
      class: "say",
      title: localised(schedule.description ?? ""),
    }),
    h("div", { class: "c-next" }, when(schedule.nextRun)),
    h(
      "div",
      { class: "c-last", title: schedule.lastError },
      schedule.lastOutcome ? chip(schedule.lastOutcome, { words: "" }) : null,
      " ",
      when(schedule.lastRun, { none: "never" }),
    ),
    h("div", { class: "c-strip" }, strip(schedule.recent)),
    h(
      "div",
      { class: "end" },
      schedule.approval === "pending" ? link("Review", "#/approvals", { kind: "small", "aria-label": `Review ${schedule.slug}` }) : switches(schedule, actions),
    ),
  );
}

const switches = (schedule, actions) => [
  button("Run", () => actions.run(schedule), { kind: "small", symbol: "play", label: `Run ${schedule.slug} now` }),
  h("button", {
    type: "button",
    class: "switch",
    role: "switch",
    "aria-checked": String(isOn(schedule)),
    "aria-label": `${schedule.slug} on or off`,
    title: isOn(schedule) ? "On; click to pause" : "Off; click to resume",
    onclick: () => actions.toggle(schedule),
  }),
];
