// Text for the time axis: tooltips and descriptions for screen readers.

import { h, quoted } from "../lib/dom.js";
import { count } from "../lib/text.js";
import { localZone, wall } from "../lib/time.js";
import { iso } from "../lib/timeline-data.js";
import { chip, runWords } from "./marks.js";
import { stateOf } from "./schedule-row.js";

/** A row of the axis in a sentence, for screen readers. */
export function rowWords(row) {
  const last = row.runs[0];
  return `: ${stateOf(row)[1]}; ${last ? `last ${runWords({ ...last, startedAt: null })} ${wall(last.plannedAt)}` : "no run yet"}; ${row.planned.length ? `next ${wall(row.planned[0])}` : "no planned times"}; ${count(row.runs.length, "run")} shown${row.excluded.length ? `; does not run ${row.excluded.map((days) => wall(days.from)).slice(0, 3).join(", ")}` : ""}`;
}

/** The tooltip of a mark. */
export function markWords(row, cell) {
  const run = cell.what;
  const lines = [h("b", null, quoted(row.slug))];
  if (cell.isPlanned)
    lines.push(
      chip("planned", { words: `planned for ${wall(run.plannedAt)}` }),
      row.timezone && row.timezone !== localZone
        ? h("span", { class: "soft" }, `${wall(run.plannedAt, row.timezone)} in ${row.timezone}`)
        : null,
    );
  else {
    lines.push(
      chip(run.outcome, {
        words: runWords({
          ...run,
          startedAt: run.startedAt && iso(run.startedAt),
          endedAt: run.endedAt && iso(run.endedAt),
        }),
      }),
      h(
        "span",
        { class: "soft" },
        `planned ${wall(run.plannedAt)}${run.plannedUntil ? ` until ${wall(run.plannedUntil)}` : ""}, ${run.trigger}`,
      ),
    );
    if (run.error) lines.push(quoted(run.error, { class: "small" }));
  }
  if (cell.size > 1) lines.push(h("span", { class: "faint small" }, `and ${count(cell.size - 1, "other")} here`));
  return lines;
}
