// What is shown while the daemon simulates: that it does, and for how long.

import { fill, h, say } from "../lib/dom.js";
import { count } from "../lib/text.js";
import { MINUTE, SECOND, length } from "../lib/time.js";

const SLOW = 10 * SECOND;

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
