// The time axis's spans, and the one that fits the data.

import { DAY, HOUR, MINUTE, at } from "./time.js";

/** How much of the past and the future each span shows. */
export const SPANS = {
  "15m": [5 * MINUTE, 15 * MINUTE],
  "3h": [HOUR, 3 * HOUR],
  "24h": [8 * HOUR, 24 * HOUR],
  "7d": [2 * DAY, 7 * DAY],
};
export const USUAL = "24h";

/** The shortest span in which at least half of the rows that move have something to show: a run, or a planned time. */
export function spanFor(rows, now) {
  const near = rows
    .map((row) => [row.runs[0]?.startedAt ?? row.runs[0]?.plannedAt ?? null, row.planned[0] ?? at(row.nextRun)])
    .filter(([last, next]) => last !== null || next !== null);
  const isIn = ([last, next], [past, ahead]) =>
    (last === null || now - last <= past) && (next === null || next - now <= ahead);
  const shows = (span) => near.filter((row) => isIn(row, span)).length;
  return Object.keys(SPANS).find((name) => near.length && 2 * shows(SPANS[name]) >= near.length) ?? USUAL;
}
