// Heartbeat and wakes: state, turns, and the system events queued for the agent.

import { get, has, post, settingsFile } from "../lib/api.js";
import { fill, h, quoted } from "../lib/dom.js";
import { spaced, when } from "../lib/time.js";
import { askText, attempt } from "../parts/dialogs.js";
import { runRow } from "../parts/run.js";
import { stateChip } from "../parts/schedule-row.js";
import { body, button, empty, facts, head, notBuilt, panel, table } from "../parts/elements.js";

const WORDS =
  "Gives your agent a turn at intervals, within your active hours, with the events since the last one. It stays quiet when there is nothing to report.";
const BEGIN =
  '[heartbeat]\nenabled = true\nevery = "30m"\nactive_hours = {start = "09:00", end = "22:00", timezone = "local"}';
const STREAMS = ["heartbeat", "events", "messages", "settings"];

export default async function heartbeat(visit) {
  if (!(await has("/api/heartbeat")))
    return {
      title: "Heartbeat",
      element: h("div", { class: "stack" }, head("Heartbeat"), panel(null, notBuilt(WORDS))),
    };
  const [hasEvents, file] = await Promise.all([has("/api/system-events"), settingsFile()]);
  const state = h("div");
  const turns = h("div");
  const events = h("div");
  const open = new Set();
  const load = async () => {
    const [data, waiting] = await Promise.all([
      get("/api/heartbeat", {}, visit.signal),
      hasEvents ? get("/api/system-events", {}, visit.signal) : { events: [] },
    ]);
    const isOn = data.enabled;
    fill(
      state,
      isOn
        ? body(
            h(
              "div",
              { class: "row" },
              stateChip({ status: data.status, health: data.pausedAt ? "off" : data.consecutiveErrors ? "failing" : "ok" }, { boxed: true }),
              data.nextBeat ? h("span", { class: "soft" }, "next beat ", when(data.nextBeat)) : null,
            ),
            data.budget?.heldUntil
              ? h(
                  "div",
                  { class: "note bad" },
                  h(
                    "span",
                    null,
                    `More than ${data.budget.turnsPerHourMax} turns within an hour: the next one waits until `,
                    when(data.budget.heldUntil),
                  ),
                )
              : null,
            data.lastError ? h("div", { class: "note bad" }, quoted(data.lastError)) : null,
            facts([
              ["Agent", quoted(data.agent)],
              ["Every", spaced(data.every)],
              [
                "Active hours",
                data.activeHours
                  ? quoted(`${data.activeHours.start} to ${data.activeHours.end} (${data.activeHours.timezone})`)
                  : "always",
              ],
              ["Last turn", data.lastTurn ? when(data.lastTurn) : "none yet"],
              [
                "Requested by",
                data.pending?.length
                  ? data.pending.map((wake) => `${wake.reason}${wake.times > 1 ? ` ×${wake.times}` : ""}`).join(", ")
                  : null,
              ],
              ["Next turn", data.nextTurn ? when(data.nextTurn) : null],
              ["Next retry", data.retryAt ? when(data.retryAt) : null],
              [
                "Turns in the last hour",
                data.budget ? `${data.budget.turnsInLastHour} of ${data.budget.turnsPerHourMax}` : null,
              ],
              ["Consecutive errors", data.consecutiveErrors || null],
              ["Session", data.sessionId ? quoted(data.sessionId, { class: "mono" }) : null],
            ]),
          )
        : empty("heart", "The heartbeat is off", WORDS, { command: BEGIN, file }),
    );
    const list = data.lastTurns ?? [];
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
            "In a turn the agent gets the events since the last one. Its reply is shown here, whether it had nothing to report or sent a message.",
          ),
    );
    fill(
      events,
      waiting.events.length
        ? table(
            "System events",
            ["When", "What", "From", "Key"],
            waiting.events.map((event) => [
              when(event.at),
              quoted(event.text),
              quoted(event.source ?? ""),
              quoted(event.contextKey ?? "", { class: "mono" }),
            ]),
          )
        : empty(
            "inbox",
            "No events are queued",
            "Events are kept until a turn has passed them to the agent. A newer event replaces an older one with the same key.",
            { command: 'wakeful add dusk --times 18:30 --event "The sun is setting"' },
          ),
    );
  };
  const wake = async () => {
    const text = await askText(
      "Wake the agent",
      "It takes a turn now, or right after the current one.",
      "What should it know? (optional)",
      { yes: "Wake" },
    );
    if (text !== null)
      attempt(
        () => post("/api/wake", { reason: "manual", ...(text ? { text } : {}) }),
        (answer) => (answer?.coalesced ? "Merged into a turn that was already requested" : "Turn requested"),
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
