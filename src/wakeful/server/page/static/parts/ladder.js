// How far a run got: claimed, sent, accepted, started, finished, each with the time it took.

import { h } from "../lib/dom.js";
import { at, length } from "../lib/time.js";

const RUNGS = ["claimed", "sent", "accepted", "started", "finished"];

/** Update how far a run got from a stream event; returns whether it changed. */
export function climb(run, event) {
  if (event.what !== "climbed" || RUNGS.indexOf(event.rung) <= RUNGS.indexOf(run.reached)) return false;
  run.reached = event.rung;
  run.ladder = { ...run.ladder, [event.rung]: event.at };
  return true;
}

/** The rungs that any attempt of a run reached, with the times of its current attempt. */
export function ladder(run) {
  const reached = run.ladder ?? {};
  const height = RUNGS.indexOf(run.reached);
  let before = at(reached.claimed) ?? at(run.startedAt);
  return h(
    "ol",
    { class: "ladder", data: { o: run.outcome }, "aria-label": `Rung: ${run.reached ?? "not started"}` },
    RUNGS.map((rung, index) => {
      const since = before;
      const moment = rung === "finished" && !reached[rung] && height === 4 ? at(run.endedAt) : at(reached[rung]);
      if (moment !== null) before = moment;
      const isReached = index <= height;
      const took = moment === null ? null : index === 0 || since === null ? "" : `+${length(moment - since)}`;
      return h(
        "li",
        {
          class: `${isReached ? "reached" : ""}${index === height ? " last" : ""}`,
          "aria-label": `${rung}: ${isReached ? "reached" : "not reached"}${took ? ` ${took}` : ""}`,
        },
        h("b", null, rung),
        h("span", null, isReached ? (took ?? "") : ""),
      );
    }),
  );
}
