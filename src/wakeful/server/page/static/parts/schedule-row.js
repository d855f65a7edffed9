// One schedule in the list.

import { h, quoted } from "../lib/dom.js";
import { actionWords } from "../lib/text.js";
import { localised, when } from "../lib/time.js";
import { chip, strip } from "./marks.js";
import { button } from "./elements.js";

/** Whether a schedule fires by itself. */
export const isOn = (one) => one.enabled && one.status !== "paused";

const HEALTHS = {
  ok: ["succeeded", "ok"],
  failing: ["failed", "failing"],
  late: ["missed", "late"],
  waiting: ["waiting", "waiting"],
};

/** A schedule's health in one word: ok, failing, late, waiting, running; or why it is off. */
export function stateChip(one, { boxed = false } = {}) {
  if (one.approval === "pending") return chip("waiting", { boxed, words: "needs approval" });
  if (one.status === "invalid") return chip("failed", { boxed, words: "invalid" });
  if (one.health === "failing") return chip("failed", { boxed, words: one.enabled ? "failing" : "disabled" });
  if (one.status === "running") return chip("running", { boxed });
  if (one.health === "off") return chip(one.status, { boxed });
  const [look, words] = HEALTHS[one.health];
  return chip(look, { boxed, words });
}

/** The row: state, action and timing, last runs, and buttons. */
export function scheduleRow(one, actions) {
  return h(
    "div",
    { class: "list-row", role: "listitem", data: { slug: one.slug } },
    h(
      "div",
      { class: "c-state", title: one.statusReason ?? one.lastError },
      stateChip(one),
    ),
    h(
      "div",
      { class: "name" },
      h("a", { class: "cut", href: `#/schedules/${one.slug}` }, quoted(one.slug)),
      quoted(actionWords(one), { class: "does cut" }),
    ),
    quoted(one.description?.replace(/, aligned to .*/, "") ?? "invalid definition", {
      class: "say",
      title: localised(one.description ?? ""),
    }),
    h("div", { class: "c-next" }, when(one.nextRun)),
    h(
      "div",
      { class: "c-last", title: one.lastError },
      one.lastOutcome ? chip(one.lastOutcome, { words: "" }) : null,
      " ",
      when(one.lastRun, { none: "never" }),
    ),
    h("div", { class: "c-strip" }, strip(one.recent)),
    h(
      "div",
      { class: "end" },
      button("Run", () => actions.run(one), { kind: "small", symbol: "play", label: `Run ${one.slug} now` }),
      h("button", {
        type: "button",
        class: "switch",
        role: "switch",
        "aria-checked": String(isOn(one)),
        "aria-label": `${one.slug} on or off`,
        title: isOn(one) ? "On; click to pause" : "Off; click to resume",
        onclick: () => actions.toggle(one),
      }),
    ),
  );
}
