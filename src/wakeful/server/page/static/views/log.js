// The live log: the daemon's events as they happen. Only the last lines are kept.

import { get } from "../lib/api.js";
import { h, quoted, say } from "../lib/dom.js";
import { outcomeWords, placeOf, short } from "../lib/text.js";
import { at, format } from "../lib/time.js";
import { icon } from "../parts/icons.js";
import { mark } from "../parts/marks.js";
import { button, choices, head } from "../parts/elements.js";

const LINES_MAX = 500;
const PER_FRAME_MAX = 60;
const BAD = new Set(["failed", "timedOut", "unknown", "unconfirmed", "missed"]);

export default async function log(visit) {
  const lines = h("div", { class: "log panel", role: "log", "aria-label": "Live log", tabindex: 0 });
  const rate = h("span", { class: "soft small figure" });
  let held = []; // lines that arrive while the log is paused; bounded like the log itself
  let isHeld = false;
  let wanted = "";
  const filter = h("input", {
    type: "search",
    placeholder: "Filter lines…",
    "aria-label": "Filter lines",
    oninput: () => {
      wanted = filter.value.trim().toLowerCase();
      for (const line of lines.children) line.classList.toggle("hidden", !fits(line));
    },
  });
  const fits = (line) => !wanted || line.textContent.toLowerCase().includes(wanted);

  const put = (events) => {
    const isAtEnd = lines.scrollTop + lines.clientHeight > lines.scrollHeight - 40;
    const shown = events.slice(-PER_FRAME_MAX);
    if (events.length > shown.length)
      lines.append(
        h(
          "div",
          { class: "faint" },
          h("span"),
          h("span", null, "…"),
          h("span", null, `${events.length - shown.length} more`),
        ),
      );
    for (const event of shown) {
      const line = row(event);
      line.classList.toggle("hidden", !fits(line));
      lines.append(line);
    }
    while (lines.childElementCount > LINES_MAX) lines.firstChild.remove();
    if (isAtEnd) lines.scrollTop = lines.scrollHeight;
  };
  const data = await get("/api/runs", { limit: 40 }, visit.signal);
  put(
    data.runs
      .reverse()
      .map((run) => ({ ...run, stream: "runs", what: run.outcome, at: run.endedAt ?? run.startedAt ?? run.plannedAt })),
  );
  visit.hear(null, (events) => {
    if (!isHeld) return put(events);
    held.push(...events);
    if (held.length > LINES_MAX) held = held.slice(-LINES_MAX);
  });
  visit.every(1_000, () => say(rate, `${visit.stream.perSecond.toLocaleString()} a second`));
  const pause = choices(
    "Follow",
    [
      ["go", "Follow"],
      ["hold", "Hold"],
    ],
    "go",
    (way) => {
      isHeld = way === "hold";
      if (!isHeld) {
        put(held);
        held = [];
        lines.scrollTop = lines.scrollHeight;
      }
    },
  );
  requestAnimationFrame(() => {
    lines.scrollTop = lines.scrollHeight;
  });
  return {
    title: "Live log",
    element: h(
      "div",
      { class: "stack" },
      head(
        "Live log",
        "Events as they happen; the last 500 lines are kept.",
        rate,
        pause,
        button("Clear", () => lines.replaceChildren()),
      ),
      h("div", { class: "search" }, icon("search"), filter),
      lines,
    ),
  };
}

function row(event) {
  const outcome = event.outcome ?? null;
  const rest = Object.entries(event)
    .filter(([name, value]) => !KNOWN.has(name) && value !== null && value !== undefined)
    .map(([name, value]) => `${name}=${short(typeof value === "object" ? JSON.stringify(value) : value, 160)}`);
  const words = [
    event.slug,
    event.runId ? `run ${event.runId}` : null,
    event.rung && !outcome ? event.rung : null,
    event.reason ? `(${event.reason})` : null,
    event.error,
    event.text,
    ...rest,
  ]
    .filter(Boolean)
    .join("  ");
  return h(
    "div",
    { class: BAD.has(outcome) || event.stream === "alerts" ? "bad" : "" },
    h(
      "time",
      { datetime: event.at },
      event.at ? format({ hour: "2-digit", minute: "2-digit", second: "2-digit" }).format(at(event.at)) : "",
    ),
    h(
      "span",
      { class: "cut" },
      outcome ? mark(outcome) : null,
      outcome ? " " : null,
      quoted(`${event.stream === "runs" ? "" : `${event.stream} `}${outcome ? outcomeWords(outcome) : event.what}`),
    ),
    event.slug
      ? h("a", { href: event.runId ? `#/runs/${event.runId}` : placeOf(event.slug) }, quoted(words))
      : quoted(words),
  );
}

const KNOWN = new Set([
  "stream",
  "seq",
  "at",
  "what",
  "slug",
  "runId",
  "outcome",
  "reason",
  "error",
  "rung",
  "text",
  "plannedAt",
  "dueAt",
  "startedAt",
  "endedAt",
  "attempt",
  "attempts",
  "trigger",
  "nextAttemptAt",
  "ladder",
  "reply",
  "output",
  "usage",
  "sessionId",
  "version",
  "delivery",
  "reasons",
  "log",
  "stuck",
]);
