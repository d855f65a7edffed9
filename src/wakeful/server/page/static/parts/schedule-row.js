// One schedule in the list.

import { h, quoted } from "../lib/dom.js";
import { actionWords } from "../lib/text.js";
import { localised, when } from "../lib/time.js";
import { chip, strip } from "./marks.js";
import { button } from "./small.js";

/** Whether it goes on by itself. */
export const isOn = (one) => one.enabled && one.status !== "paused";

/** How it is: its health where something is wrong, else its status. */
function stateChip(one) {
  if (one.health === "failing") return chip("failed", { words: "failing" });
  if (one.health === "late") return chip("missed", { words: "late" });
  return chip(one.status, { words: one.status === "disabled" ? "off" : one.status });
}

/** The row: where it stands, what it does and when, how it went, and what can be done with it. */
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
    quoted(one.description?.replace(/, on the grid of .*/, "") ?? "cannot be read any more", {
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
        title: isOn(one) ? "On; pause it" : "Off; let it go on",
        onclick: () => actions.toggle(one),
      }),
    ),
  );
}
