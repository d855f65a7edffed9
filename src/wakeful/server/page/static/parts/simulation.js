// What a definition would change, next to its form: the daemon simulates the coming days with it and without it.

import { has, post } from "../lib/api.js";
import { fill, h, quoted } from "../lib/dom.js";
import { dollars } from "../lib/money.js";
import { count, placeOf } from "../lib/text.js";
import { at, localised, wall } from "../lib/time.js";
import { daysAhead, simulating } from "./simulating.js";
import { body, button, facts, panel } from "./elements.js";

/** The panel; null if the daemon cannot simulate. `definition` returns the draft with its slug, or throws. */
export async function whatWouldChange(definition) {
  if (!(await has("/api/simulate"))) return null;
  const shown = h("div", { class: "stack", "aria-live": "polite" }, h("p", { class: "soft" }, "Simulates the coming days with this definition and without it. Nothing is contacted or changed."));
  const look = async () => {
    start.disabled = true;
    let stop = null;
    try {
      const draft = definition();
      const days = await daysAhead();
      stop = simulating(shown, days);
      const result = await post("/api/simulate", { days, with: [draft] });
      stop();
      fill(shown, difference(result, days));
    } catch (error) {
      stop?.();
      fill(shown, h("div", { class: "note bad" }, quoted(error.message)));
    }
    start.disabled = false;
  };
  const start = button("What would change?", look, { symbol: "ahead" });
  return panel("What would change", body(shown, h("div", { class: "row" }, start)));
}

function difference({ difference: changes, timezone, peak }, days) {
  const runsOf = ({ slug, runs, first }) => h("li", null, h("a", { href: placeOf(slug) }, quoted(slug)), ` ${count(runs, "run")}, the first ${wall(at(first))}`);
  const changed = ({ slug, outcomes, starts }) =>
    h(
      "li",
      null,
      h("a", { href: placeOf(slug) }, quoted(slug)),
      ` ${[outcomes ? `${count(outcomes, "run")} would end differently` : null, starts ? `${count(starts, "run")} would start at another time` : null].filter(Boolean).join(", ")}`,
    );
  const list = (words, some, line) => (some?.length ? [h("h3", null, words), h("ul", { class: "plain-list" }, some.slice(0, 20).map(line))] : null);
  return [
    h("p", { class: "words" }, quoted(localised(changes.sentence))),
    list("More runs", changes.added, runsOf),
    list("Fewer runs", changes.removed, runsOf),
    list("Others", changes.changed, changed),
    facts([
      ["Cost", changes.cost ? `${changes.cost > 0 ? "+" : "−"}${dollars(Math.abs(changes.cost))} in ${count(days, "day")}` : null],
      ["Simulated", `${count(days, "day")} (${timezone})`],
      ["Most runs at once", peak.running],
    ]),
  ];
}
