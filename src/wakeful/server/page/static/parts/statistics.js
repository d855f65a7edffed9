// The statistics of a schedule: counts, success rate, durations.

import { h, s } from "../lib/dom.js";
import { count, outcomeWords } from "../lib/text.js";
import { at, length, wall } from "../lib/time.js";
import { chip, runWords } from "./marks.js";

const figure = (value, words) => h("div", null, h("b", null, value), h("span", null, words));

/** Figures, a chart of the last runs, and counts by outcome. */
export function statistics(stats, runs) {
  const counts = Object.entries(stats.counts).filter(([, n]) => n);
  const total = counts.reduce((sum, [, n]) => sum + n, 0);
  const streak = stats.streak === 0 ? "–" : stats.streak < 0 ? count(-stats.streak, "error") : count(stats.streak, "success", "successes");
  return [
    h(
      "div",
      { class: "figures" },
      figure(stats.successRate === null ? "–" : `${Math.round(stats.successRate * 1000) / 10}%`, "succeeded"),
      figure(length(stats.p50DurationMs), "median"),
      figure(length(stats.p95DurationMs), "95th percentile"),
      figure(streak, "current streak"),
      figure(total.toLocaleString(), "instants"),
    ),
    durations(runs),
    h(
      "div",
      { class: "row small" },
      counts.map(([outcome, n]) => chip(outcome, { words: `${n.toLocaleString()} ${outcomeWords(outcome)}` })),
    ),
  ];
}

/** Durations of the last runs, oldest first, in the colour of their outcome. */
function durations(runs) {
  const measured = runs
    .filter((run) => run.startedAt && run.endedAt)
    .slice(0, 40)
    .reverse();
  if (measured.length < 2) return null;
  const most = Math.max(1, ...measured.map((run) => at(run.endedAt) - at(run.startedAt)));
  const wide = 400 / Math.max(12, measured.length);
  return s(
    "svg",
    {
      class: "chart",
      viewBox: "0 0 400 74",
      role: "img",
      "aria-label": `Durations of the last ${measured.length} runs; longest ${length(most)}`,
    },
    s("line", { x1: 0, x2: 400, y1: 73, y2: 73 }),
    measured.map((run, index) => {
      const tall = Math.max(3, (66 * (at(run.endedAt) - at(run.startedAt))) / most);
      return s(
        "rect",
        {
          x: index * wide + 1,
          y: 73 - tall,
          width: Math.max(2, wide - 3),
          height: tall,
          rx: 2,
          data: { o: run.outcome },
        },
        s("title", null, `${wall(at(run.startedAt))}: ${runWords(run)}`),
      );
    }),
  );
}
