// Heartbeat and wakes: when the agent is looked in on, who woke it, and what it is still to be told.

import { get, post } from "../lib/api.js";
import { fill, h, quoted } from "../lib/dom.js";
import { has } from "../lib/parts-there.js";
import { when } from "../lib/time.js";
import { askText, attempt } from "../parts/asking.js";
import { chip } from "../parts/marks.js";
import { runRow } from "../parts/run.js";
import { body, button, empty, facts, head, notBuilt, panel, table } from "../parts/small.js";

const WORDS =
  "Looks in on your agent at intervals, in your active hours, with what happened meanwhile; quiet when there is nothing to say.";
const BEGIN =
  '[heartbeat]\nenabled = true\nevery = "30m"\nactive_hours = {start = "09:00", end = "22:00", timezone = "local"}';
const STREAMS = ["heartbeat", "events", "messages", "settings"];

export default async function heartbeat(visit) {
  if (!(await has("/api/heartbeat")))
    return {
      title: "Heartbeat",
      element: h("div", { class: "stack" }, head("Heartbeat"), panel(null, notBuilt(WORDS))),
    };
  const hasEvents = await has("/api/system-events");
  const state = h("div");
  const turns = h("div");
  const events = h("div");
  const open = new Set();
  const load = async () => {
    const [told, waiting] = await Promise.all([
      get("/api/heartbeat", {}, visit.signal),
      hasEvents ? get("/api/system-events", {}, visit.signal) : { events: [] },
    ]);
    const isOn = told.enabled;
    fill(
      state,
      isOn
        ? body(
            h(
              "div",
              { class: "row" },
              chip(told.status, { boxed: true }),
              told.nextBeat ? h("span", { class: "soft" }, "next beat ", when(told.nextBeat)) : null,
            ),
            told.budget?.heldUntil
              ? h(
                  "div",
                  { class: "note bad" },
                  h(
                    "span",
                    null,
                    `More than ${told.budget.turnsPerHourMax} turns within an hour: the next one waits, `,
                    when(told.budget.heldUntil),
                  ),
                )
              : null,
            told.lastError ? h("div", { class: "note bad" }, quoted(told.lastError)) : null,
            facts([
              ["Agent", quoted(told.agent)],
              ["Every", told.every],
              [
                "Active hours",
                told.activeHours
                  ? quoted(`${told.activeHours.start} to ${told.activeHours.end} (${told.activeHours.timezone})`)
                  : "always",
              ],
              ["Last turn", told.lastTurn ? when(told.lastTurn) : "none yet"],
              [
                "Asked for",
                told.pending?.length
                  ? told.pending.map((wake) => `${wake.reason}${wake.times > 1 ? ` ×${wake.times}` : ""}`).join(", ")
                  : null,
              ],
              ["Next turn", told.nextTurn ? when(told.nextTurn) : null],
              ["Tries again", told.retryAt ? when(told.retryAt) : null],
              [
                "Turns in the last hour",
                told.budget ? `${told.budget.turnsInLastHour} of ${told.budget.turnsPerHourMax}` : null,
              ],
              ["Errors in a row", told.consecutiveErrors || null],
              ["Session", told.sessionId ? quoted(told.sessionId, { class: "mono" }) : null],
            ]),
          )
        : empty("heart", "The heartbeat is off", WORDS, { command: BEGIN }),
    );
    const list = told.lastTurns ?? [];
    fill(
      turns,
      list.length
        ? list.map((run) =>
            runRow(run, {
              isOpen: open.has(run.runId),
              ontoggle: (is) => (is ? open.add(run.runId) : open.delete(run.runId)),
            }),
          )
        : empty(
            "heart",
            "No turn yet",
            "A turn is one look of the agent at what happened. Its answer is kept here: nothing to say, or what was delivered.",
          ),
    );
    fill(
      events,
      waiting.events.length
        ? table(
            "System events",
            ["When", "What", "From", "Key"],
            waiting.events.map((one) => [
              when(one.at),
              quoted(one.text),
              quoted(one.source ?? ""),
              quoted(one.contextKey ?? "", { class: "mono" }),
            ]),
          )
        : empty(
            "inbox",
            "Nothing waits to be told",
            "Events are kept until a turn has carried them to the agent. One per key: a newer one takes the place of an older.",
            { command: 'wakeful add dusk --times 18:30 --event "The sun goes down"' },
          ),
    );
  };
  const wake = async () => {
    const text = await askText(
      "Wake the agent",
      "It takes a turn at once, unless one runs already; then it follows.",
      "What should it know? (may be left empty)",
      { yes: "Wake" },
    );
    if (text !== null)
      attempt(
        () => post("/api/wake", { reason: "manual", ...(text ? { text } : {}) }),
        (answer) => (answer?.coalesced ? "A wake was under way; this one joins it" : "Woken"),
      );
  };
  await visit.keep([...STREAMS, "runs"], load, {
    matters: (event) => event.stream !== "runs" || event.slug === "heartbeat",
  });
  return {
    title: "Heartbeat",
    element: h(
      "div",
      { class: "stack" },
      head(
        "Heartbeat",
        WORDS,
        (await has("/api/wake")) ? button("Wake now", wake, { kind: "primary", symbol: "sun" }) : null,
      ),
      h(
        "div",
        { class: "columns" },
        h("div", { class: "stack" }, panel("Turns", turns), panel("System events", events)),
        panel("State", state),
      ),
    ),
  };
}
