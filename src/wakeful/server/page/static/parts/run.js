// The details of a run: rungs, attempts, reply, error, log and deliveries.

import { h, quoted } from "../lib/dom.js";
import { outcomeWords, placeOf, preview, short } from "../lib/text.js";
import { at, clock, length, wall, when } from "../lib/time.js";
import { ladder } from "./ladder.js";
import { chip } from "./marks.js";
import { facts, table } from "./elements.js";

const TRIGGERS = {
  schedule: "its schedule",
  catchUp: "its schedule, after an outage",
  manual: "a person",
  wake: "a wake",
  replay: "a person, as a replay",
  backfill: "a person, as a backfill",
};
const PRICED = { reported: "as reported by the agent", table: "by the price table", unknown: "" };

const costWords = (run) =>
  run.cost === null
    ? "unknown"
    : [`$${run.cost.toFixed(4)}`, PRICED[run.priced], run.usage.listPrice ? "list price" : ""].filter(Boolean).join(", ");

/** How long a run took, or has taken so far. */
export function took(run) {
  const start = at(run.startedAt);
  if (start === null) return "";
  return length((at(run.endedAt) ?? Date.now()) - start);
}

/** All details of a run; `cure`: what to do about its error. */
export function runDetails(run, cure = null) {
  const late = at(run.startedAt) === null ? null : at(run.startedAt) - at(run.dueAt);
  return [
    run.error ? h("div", { class: "note bad" }, h("pre", { class: "grow", tabindex: 0 }, quoted(run.error))) : null,
    cure ? h("p", { class: "cure" }, quoted(cure)) : null,
    run.count > 1
      ? h(
          "p",
          null,
          `This row covers ${run.count.toLocaleString()} instants, from ${wall(at(run.plannedAt))} until ${wall(at(run.plannedUntil))}.`,
        )
      : ladder(run),
    run.reply != null ? labelled("Reply", run.reply || "(empty)") : null,
    run.output ? labelled("Output", run.output) : null,
    run.stderr ? labelled("Error output (stderr)", run.stderr) : null,
    facts([
      ["Run", h("a", { href: `#/runs/${run.runId}` }, `#${run.runId}`)],
      [
        "Planned",
        `${wall(at(run.plannedAt))}${late !== null && late > 999 && run.trigger !== "manual" ? `, started ${length(late)} late` : ""}`,
      ],
      [
        "Requested by",
        TRIGGERS[run.trigger] ?? run.trigger,
      ],
      ["Replay of", run.replayOf ? h("a", { href: `#/runs/${run.replayOf}` }, `run ${run.replayOf}`) : null],
      ["Cancelled", run.cancelRequestedAt ? ["requested ", when(run.cancelRequestedAt)] : null],
      ["Node", run.node ? quoted(run.node) : null],
      ["Model", run.usage?.model ? quoted(run.usage.model) : null],
      ["Reason", run.reason ? quoted(run.reason) : null],
      ["Next attempt", run.nextAttemptAt ? when(run.nextAttemptAt) : null],
      ["Blocked by", run.blockedBy ? h("a", { href: `#/runs/${run.blockedBy}` }, `run ${run.blockedBy}`) : null],
      ["Session", run.sessionId ? quoted(run.sessionId, { class: "mono" }) : null],
      [
        "Tokens",
        run.usage
          ? ["input", "cachedInput", "output", "reasoning", "total"]
              .filter((name) => run.usage[name] !== null)
              .map((name) => `${name} ${run.usage[name].toLocaleString()}`)
              .join(", ")
          : null,
      ],
      ["Cost", run.usage ? costWords(run) : null],
      ["Refused tools", run.refusedTools?.length ? quoted(run.refusedTools.join(", ")) : null],
      ["Delivery", run.delivery ? [run.delivery, ...(run.deliveries ?? [])].filter(isNotRepeated).map(delivered) : null],
      ["Woken by", run.reasons?.length ? quoted(run.reasons.join(", ")) : null],
    ]),
    run.log?.length
      ? h(
          "details",
          { open: run.outcome !== "succeeded" },
          h(
            "summary",
            { class: "soft small" },
            `Log: ${run.log.length} lines${run.logIsCut ? ", and more in the files" : ""}`,
          ),
          h("pre", { class: "text", tabindex: 0 }, quoted(run.log.map(logLine).join("\n"))),
        )
      : null,
    run.attempts?.length > 1
      ? table(
          "Attempts",
          ["Attempt", "Outcome", "Started", "Took", "Rung reached", "Error"],
          run.attempts.map((attempt) => [
            attempt.attempt,
            chip(attempt.outcome, { words: outcomeWords(attempt.outcome) }),
            attempt.startedAt ? wall(at(attempt.startedAt)) : "–",
            took(attempt),
            attempt.rung ?? "–",
            attempt.error ? quoted(attempt.error) : "",
          ]),
        )
      : null,
  ];
}

/** A run's deliveries, without the duplicate of the first. */
const isNotRepeated = (delivery, place, all) => place === 0 || delivery.id !== all[0].id;

/** The delivery of the reply. */
function delivered(delivery) {
  const look =
    { pending: "waiting", delivered: "succeeded", dead: "failed", discarded: "skipped" }[delivery.status] ?? "unknown";
  const where = [delivery.channel, delivery.to].filter(Boolean).join(" → ");
  return [
    chip(look, { words: delivery.status === "dead" ? "undelivered" : delivery.status }),
    " ",
    quoted(where || delivery.reason || "", { class: "soft" }),
    delivery.lastError ? h("p", { class: "small" }, quoted(delivery.lastError)) : null,
    delivery.status === "dead" ? h("p", null, h("a", { href: `#/outbox?status=dead&open=${encodeURIComponent(delivery.id)}` }, "Show the message")) : null,
  ];
}

function logLine(line) {
  const about = Object.entries(line.details ?? {})
    .filter(([name]) => name !== "runId")
    .map(([name, value]) => `${name}=${short(typeof value === "object" ? JSON.stringify(value) : value, 300)}`);
  return [
    clock(at(line.ts)),
    line.level.padEnd(5),
    line.action,
    line.duration_ms == null ? null : length(line.duration_ms),
    ...about,
  ]
    .filter((part) => part !== null)
    .join("  ");
}

const labelled = (name, text) =>
  h(
    "div",
    { class: "field" },
    h("span", { class: "label" }, name),
    h("pre", { class: "text", tabindex: 0 }, quoted(text)),
  );

/** An expandable row. `key` identifies it, so that open rows stay open. */
export function runRow(run, { isOpen = false, ontoggle = null, withSlug = false } = {}) {
  const inside = h("div", { class: "inside" });
  const of = withSlug ? h("p", null, h("a", { href: placeOf(run.slug) }, "To ", quoted(run.slug))) : null;
  const shown = () => [of, ...runDetails(run)].filter(Boolean);
  const row = h(
    "details",
    {
      class: "run",
      open: isOpen,
      data: { run: run.runId },
      ontoggle: () => {
        if (row.open && !inside.childNodes.length) inside.append(...shown());
        ontoggle?.(row.open);
      },
    },
    h(
      "summary",
      null,
      chip(run.outcome),
      h(
        "span",
        { class: "cut wide" },
        withSlug ? [h("b", null, quoted(run.slug)), " "] : null,
        quoted(
          run.error ??
            (run.reply == null ? null : preview(run.reply)) ??
            (run.reason ? `(${run.reason})` : (run.output ?? (run.trigger === "schedule" ? "" : run.trigger))),
          { class: "soft" },
        ),
        run.count > 1 ? ` ${run.count.toLocaleString()} instants` : "",
      ),
      h("span", { class: "figure soft small" }, took(run)),
      when(run.startedAt ?? run.plannedAt),
    ),
    inside,
  );
  if (isOpen) inside.append(...shown());
  return row;
}
