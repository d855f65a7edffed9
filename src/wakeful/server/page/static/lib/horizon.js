// How many days to simulate: a week, or a day where schedules fire so often that a week would take long.

import { get } from "./api.js";
import { DAY, at } from "./time.js";

const LOOKED_AT = 300;
const FIRES_MAX = 20_000; // a simulation of this many takes about two seconds

/** The number of days: 7 or 1. */
export async function daysAhead(signal) {
  const now = Date.now();
  const until = new Date(now + 7 * DAY).toISOString();
  const { upcoming } = await get("/api/upcoming", { limit: LOOKED_AT, until }, signal);
  if (upcoming.length < LOOKED_AT) return 7;
  const perDay = (LOOKED_AT * DAY) / Math.max(1, at(upcoming.at(-1).dueAt) - now);
  return 7 * perDay > FIRES_MAX ? 1 : 7;
}
