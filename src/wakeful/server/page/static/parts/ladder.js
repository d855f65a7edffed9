// How far a run got: claimed, sent, accepted, started, finished, each with how long it took to get there.

import { h } from "../lib/dom.js";
import { at, length } from "../lib/time.js";

const RUNGS = ["claimed", "sent", "accepted", "started", "finished"];

/** Move a run up by an event of the stream; returns whether it moved. */
export function climb(run, event) {
  if (event.what !== "climbed" || RUNGS.indexOf(event.rung) <= RUNGS.indexOf(run.rung)) return false;
  run.rung = event.rung;
  run.ladder = { ...run.ladder, [event.rung]: event.at };
  return true;
}

/** The ladder of a run's current attempt. */
export function ladder(run) {
  const reached = run.ladder ?? {};
  const height = RUNGS.indexOf(run.rung);
  let before = at(reached.claimed) ?? at(run.startedAt);
  return h(
    "ol",
    { class: "ladder", data: { o: run.outcome }, "aria-label": `Ladder: ${run.rung ?? "not begun"}` },
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
