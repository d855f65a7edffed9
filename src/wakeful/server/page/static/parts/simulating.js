// How far to simulate, and what is shown while the daemon does.

import { get } from "../lib/api.js";
import { fill, h, say } from "../lib/dom.js";
import { count } from "../lib/text.js";
import { DAY, MINUTE, SECOND, at, length } from "../lib/time.js";

const LOOKED_AT = 300;
const FIRES_MAX = 20_000; // a simulation of this many takes about two seconds
const SLOW = 10 * SECOND;

/** How many days to simulate: a week, or a day where schedules fire so often that a week would take long. */
export async function daysAhead(signal) {
  const now = Date.now();
  const until = new Date(now + 7 * DAY).toISOString();
  const { upcoming } = await get("/api/upcoming", { limit: LOOKED_AT, until }, signal);
  if (upcoming.length < LOOKED_AT) return 7;
  const perDay = (LOOKED_AT * DAY) / Math.max(1, at(upcoming.at(-1).dueAt) - now);
  return 7 * perDay > FIRES_MAX ? 1 : 7;
}

/** Show it in `place` until the returned function is called, or the signal is aborted. */
export function simulating(place, days, signal = null) {
  const words = `Simulating ${count(Number(days), "day")}…`;
  const elapsed = h("span", { class: "figure soft", "aria-hidden": true }, "0 s");
  const slow = h("p", { class: "soft small hidden" }, "Schedules that run often make it slow. Nothing else waits for it.");
  const start = Date.now();
  const timer = setInterval(() => {
    const took = Date.now() - start;
    say(elapsed, took < MINUTE ? `${Math.round(took / SECOND)} s` : length(took));
    slow.classList.toggle("hidden", took < SLOW);
  }, SECOND);
  signal?.addEventListener("abort", () => clearInterval(timer));
  const heading = h("div", { class: "row" }, h("b", { role: "status" }, words), elapsed);
  fill(place, h("div", { class: "note simulating" }, h("div", { class: "grow" }, heading, h("progress", { "aria-label": words }), slow)));
  return () => {
    clearInterval(timer);
    fill(place);
  };
}
