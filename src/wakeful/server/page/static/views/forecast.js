// What will happen: expected runs, tokens and cost of the coming days, and what could go wrong.

import { get, has } from "../lib/api.js";
import { fill, h, quoted } from "../lib/dom.js";
import { amountOf, dollars, scopeWords } from "../lib/money.js";
import { count, placeOf } from "../lib/text.js";
import { MINUTE, at, format, wall, when } from "../lib/time.js";
import { bars } from "../parts/bars.js";
import { daysAhead, simulating } from "../parts/simulating.js";
import { body, button, choices, empty, head, notBuilt, panel, table, trouble } from "../parts/elements.js";

const WORDS =
  "What the coming days will bring: the engine simulates them from the record of each schedule, and contacts nothing.";
const FRESH = 10 * MINUTE; // a forecast that is younger is not made again by itself
const DAYS = [
  ["1", "1 day"],
  ["7", "7 days"],
  ["30", "30 days"],
];
/** Each kind of risk: its title, the text for an item, and the text if there is none. */
const PARTS = [
  ["budgets", "Budgets at risk", budgetWords, "No budget is likely to be used up."],
  ["windows", "Quota windows", windowWords, "No quota window will be used up."],
  ["collisions", "Waits", collisionWords, "No run waits for another for a minute or longer."],
];

export default async function forecast(visit) {
  if (!(await has("/api/forecast")))
    return { title: "Forecast", element: h("div", { class: "stack" }, head("Forecast"), panel(null, notBuilt(WORDS))) };
  const asked = visit.query.get("days");
  let days = DAYS.some(([value]) => value === asked) ? asked : String(await daysAhead(visit.signal));
  const results = h("div", { class: "stack", "aria-live": "polite" });
  const progress = h("div");
  let request = null;
  /** Simulate. Meanwhile the last forecast of as many days is shown, if the daemon has one; if it is `fresh`, it will
   * do. */
  const again = async (fresh = 0) => {
    request?.abort();
    const mine = (request = new AbortController());
    const signal = AbortSignal.any([visit.signal, mine.signal]);
    const stop = simulating(progress, days, signal);
    try {
      const latest = await get("/api/forecast", { days, latest: true }, signal);
      fill(results, latest ? shown(latest) : null);
      if (!latest || Date.now() - at(latest.from) >= fresh) fill(results, shown(await get("/api/forecast", { days }, signal)));
      stop();
    } catch (error) {
      if (error.name === "AbortError") return;
      stop();
      fill(results, trouble(error, () => again()));
    }
  };
  again(FRESH); // it takes a moment: the view is shown first
  return {
    title: "Forecast",
    element: h(
      "div",
      { class: "stack" },
      head(
        "Forecast",
        WORDS,
        choices("Period", DAYS, days, (value) => {
          days = value;
          history.replaceState(null, "", `#/forecast?days=${days}`);
          again(FRESH);
        }),
        button("Simulate again", () => again(), { symbol: "again" }),
      ),
      progress,
      results,
    ),
  };
}

function shown(data) {
  if (!data.days.some((day) => day.runs)) return panel(null, empty("ahead", "Nothing is planned", "No schedule fires in this period."));
  const { cost, runs, tokens } = data.total;
  return [
    panel(
      "Expected",
      { actions: h("span", { class: "soft small" }, "made ", when(data.from), `, days in ${data.timezone}`) },
      body(
        h(
          "div",
          { class: "figures" },
          figure(dollars(cost.expected), range(cost) ?? "cost"),
          figure(runs.toLocaleString(), runs === 1 ? "run" : "runs"),
          figure(Math.round(tokens.expected).toLocaleString(), "tokens"),
          data.unknownCosts ? figure(data.unknownCosts.toLocaleString(), "turns of unknown cost") : null,
        ),
        bars("Expected cost per day", data.days.map(point)),
        data.accuracy ? accuracy(data.accuracy) : h("p", { class: "soft small" }, "There is no earlier forecast to compare with yet."),
      ),
    ),
    data.unpriced.map(({ agent, sentence }) => h("p", { class: "note warn" }, h("span", null, "Cost of ", quoted(agent), " unknown: ", quoted(sentence), "."))),
    h(
      "div",
      { class: "cards" },
      PARTS.map(([name, title, words, none]) =>
        panel(title, body(data[name].length ? h("ul", { class: "plain-list" }, data[name].slice(0, 10).map((item) => h("li", null, words(item)))) : h("p", { class: "soft" }, none))),
      ),
    ),
    panel("By day", table("By day", ["Day", "Runs", "Tokens", "Cost", "Range"], data.days.map(dayRow))),
    panel("By schedule", table("By schedule", ["Schedule", "Runs", "Turns", "Cost"], data.schedules.map(scheduleRow))),
  ];
}

const figure = (value, words) => h("div", null, h("b", null, value), h("span", null, words));
const dayWords = (date) => format({ weekday: "short", day: "numeric", month: "short" }, "UTC").format(Date.parse(date));
const range = ({ low, high }) => (high > low ? `${dollars(low)} to ${dollars(high)}` : null);
const schedule = (slug) => h("a", { href: placeOf(slug) }, quoted(slug));

const point = ({ date, runs, cost }) => ({
  label: String(Number(date.slice(8))),
  value: cost.expected,
  low: cost.low,
  high: cost.high,
  words: `${dayWords(date)}: ${dollars(cost.expected)}${range(cost) ? ` (${range(cost)})` : ""}, ${count(runs, "run")}`,
});

const dayRow = ({ date, runs, tokens, cost }) => [
  dayWords(date),
  runs.toLocaleString(),
  Math.round(tokens.expected).toLocaleString(),
  dollars(cost.expected),
  range(cost) ?? "–",
];

const scheduleRow = ({ slug, runs, turns, cost }) => [schedule(slug), runs.toLocaleString(), turns.toLocaleString(), turns ? dollars(cost) : "–"];

function budgetWords({ scope, period, unit, date, limit, expected, high, risk, skipped }) {
  const lost = skipped ? `; ${count(skipped, "run")} would be skipped` : "";
  return `${scopeWords(scope)} per ${period}, ${dayWords(date)}: ${Math.round(100 * risk)}% likely to be used up (expected ${amountOf(expected, unit)}, up to ${amountOf(high, unit)}, limit ${amountOf(limit, unit)})${lost}.`;
}

function windowWords({ slot, exhaustedAt, resetsAt, fits, slugs }) {
  return [h("a", { href: "#/slots" }, quoted(slot)), ` is used up ${wall(at(exhaustedAt))}, and resets ${wall(at(resetsAt))}; there is enough quota again from ${wall(at(fits))}. Due in between: `, quoted(slugs.join(", ") || "nothing"), "."];
}

function collisionWords({ lane, slug, runs, longest, first }) {
  return [schedule(slug), ` waits for the lane `, quoted(lane), `: ${count(runs, "run")}, up to ${longest}, first ${wall(at(first))}.`];
}

/** How the last forecast compared with what happened. */
function accuracy({ madeAt, days, cost, error, within }) {
  const off = error === null ? "" : `, ${Math.abs(Math.round(100 * error))}% too ${error > 0 ? "high" : "low"}`;
  return h("p", { class: "soft small" }, `The forecast of ${wall(at(madeAt))} expected ${dollars(cost.expected)} for ${count(days, "day")}; it was ${dollars(cost.actual)}${off}, ${within ? "within" : "outside"} the range.`);
}
