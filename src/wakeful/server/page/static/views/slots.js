// Quota slots: usage of each window, its next reset, and its wakes.

import { get, has, post } from "../lib/api.js";
import { fill, h, quoted, s, say } from "../lib/dom.js";
import { windowOf } from "../lib/slots.js";
import { at, length, wall, when } from "../lib/time.js";
import { attempt } from "../parts/dialogs.js";
import { chip } from "../parts/marks.js";
import { body, button, empty, facts, gauge, head, link, notBuilt, panel } from "../parts/elements.js";

const WORDS =
  "A slot is an API key whose quota resets some hours after its first use. Wakeful keeps the window running, so that it resets when you need it.";
const BEGIN =
  '[slots.main]\nprovider = "glm"\napi_key = {env = "GLM_KEY"}\ntimes = ["09:00", "14:00"]\nafter_reset = "1m"';

const LOOKS = {
  new: "waiting",
  warm: "succeeded",
  cold: "skipped",
  waking: "running",
  exhausted: "timedOut",
  failing: "failed",
  disabled: "failed",
  off: "disabled",
  invalid: "invalid",
};

export default async function slots(visit) {
  if (!(await has("/api/slots")))
    return {
      title: "Quota slots",
      element: h("div", { class: "stack" }, head("Quota slots"), panel(null, notBuilt(WORDS))),
    };
  const cards = h("div", { class: "cards" });
  const none = h("div");
  let counted = [];
  const load = async () => {
    const response = await get("/api/slots", {}, visit.signal);
    if (visit.isSame(response)) return;
    counted = [];
    fill(
      cards,
      response.slots.map((slot) => card(slot)),
    );
    fill(none, response.slots.length ? null : panel(null, empty("gauge", "No quota slots yet", WORDS, { command: BEGIN })));
    tick();
  };
  const act = (slot, what, words) =>
    attempt(() => post(`/api/slots/${encodeURIComponent(slot.name)}/${what}`), words).then(() =>
      load().catch(visit.ignore),
    );
  const card = (slot) => {
    const reset = at(slot.nextResetTime);
    const countdown = h("b", { data: { countdown: slot.name } });
    if (reset !== null) counted.push([countdown, reset]);
    const words = slot.status === "off" ? "switched off" : slot.status;
    return panel(
      quoted(slot.name),
      { actions: chip(LOOKS[slot.status] ?? "unknown", { words }) },
      body(
        gauge(slot.percentage, `${slot.name}: ${slot.percentage ?? "unknown"} percent used`),
        h(
          "div",
          { class: "slot-now" },
          reset === null
            ? h("span", { class: "soft" }, "The window is not running")
            : [countdown, h("span", { class: "soft small" }, `until the reset at ${wall(reset)}`)],
        ),
        windowBar(slot),
        slot.statusReason && !["warm", "off"].includes(slot.status)
          ? h(
              "div",
              { class: "note" },
              h(
                "div",
                null,
                quoted(slot.statusReason),
                slot.cure ? h("p", { class: "soft small" }, quoted(slot.cure)) : null,
              ),
            )
          : null,
        slot.lastError ? h("div", { class: "note bad" }, quoted(slot.lastError)) : null,
        facts([
          ["Next wake", slot.nextWake ? when(slot.nextWake) : null],
          ["Next poll", slot.nextPoll ? when(slot.nextPoll) : null],
          ["Defined in", slot.source === "settings" ? `wakeful.toml, [slots.${slot.name}]` : null],
          ["Wake errors", slot.wakeErrors || null],
          ["Quota errors", slot.quotaErrors || null],
          ["Waking", slot.wakeDisabled ? "off after too many errors" : null],
          ["Last poll", slot.lastPoll ? when(slot.lastPoll) : null],
          ...usage(slot),
        ]),
        history(slot.history),
        h(
          "div",
          { class: "row" },
          button("Wake now", () => act(slot, "wake", `${slot.name} is being woken`), { kind: "small", symbol: "sun" }),
          button("Poll now", () => act(slot, "poll", `${slot.name} is being polled`), { kind: "small", symbol: "again" }),
          slot.source === "store" ? link("Edit", `#/slots/${encodeURIComponent(slot.name)}/edit`, { kind: "small", symbol: "edit", "aria-label": `Edit ${slot.name}` }) : null,
          slot.disabled || slot.wakeDisabled
            ? button("Resume", () => act(slot, "resume", `${slot.name} resumed`), {
                kind: "small primary",
                symbol: "play",
              })
            : null,
        ),
      ),
    );
  };
  const tick = () => {
    for (const [element, reset] of counted) say(element, reset > Date.now() ? clockOf(reset - Date.now()) : "now");
  };
  await visit.keep(["slots"], load);
  visit.every(1_000, tick);
  return { title: "Quota slots", element: h("div", { class: "stack" }, head("Quota slots", WORDS, link("New slot", "#/new-slot", { kind: "primary", symbol: "plus" })), cards, none) };
}

/** The usage reported by the provider: calls, tokens, tools and limits. */
function usage({ limits, stats }) {
  const count = (n, what) => (typeof n === "number" ? `${n.toLocaleString()} ${what}` : null);
  const list = (...parts) => parts.filter(Boolean).join(", ") || null;
  const calls = (part) => list(count(part?.calls, "calls"), count(part?.tokens, "tokens"));
  const tools = Object.entries(stats?.tools ?? {}).map(([name, n]) => count(n, name));
  return [
    ["This window", calls(stats?.window)],
    ["Last 24 hours", calls(stats?.day)],
    ["Tools, 24 hours", list(...tools)],
    ...(limits ?? [])
      .filter((limit) => typeof limit?.usage === "number")
      .map((limit) => [
        limit.type === "TIME_LIMIT" ? "Tool calls in the plan" : limit.type,
        `${(limit.currentValue ?? 0).toLocaleString()} of ${limit.usage.toLocaleString()}`,
      ]),
  ];
}

function clockOf(ms) {
  const seconds = Math.ceil(ms / 1_000);
  const two = (n) => String(n).padStart(2, "0");
  return `${Math.floor(seconds / 3600)}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
}

/** How much of the window's time has passed. */
function windowBar(slot) {
  const window = windowOf(slot);
  if (window === null || slot.windowStart === null) return null;
  const [start, end] = [window.from, window.until];
  const share = Math.min(1, Math.max(0, (Date.now() - start) / (end - start)));
  const bar = s(
    "svg",
    {
      viewBox: "0 0 400 10",
      class: "chart",
      role: "img",
      "aria-label": `${Math.round(share * 100)} percent of the window's ${length(end - start)} have passed`,
    },
    s("rect", { x: 0, y: 2, width: 400, height: 6, rx: 3 }),
    s("rect", { x: 0, y: 2, width: Math.max(3, 400 * share), height: 6, rx: 3 }),
  );
  bar.style.setProperty("height", "10px");
  bar.children[0].style.setProperty("fill", "var(--line)");
  bar.children[1].style.setProperty("fill", "var(--accent)");
  return bar;
}

/** The used percentage over time, as far as it is kept. */
function history(points) {
  const known = (points ?? [])
    .map((reading) => [at(reading.at ?? reading.time), reading.percentage])
    .filter(([time, share]) => time !== null && share != null)
    .slice(-120);
  if (known.length < 2) return null;
  const [first, last] = [known[0][0], known.at(-1)[0]];
  const spot = ([time, share]) => `${(400 * (time - first)) / Math.max(1, last - first)},${70 - 0.66 * share}`;
  const line = s("polyline", { points: known.map(spot).join(" ") });
  for (const [name, value] of [
    ["fill", "none"],
    ["stroke", "var(--accent)"],
    ["stroke-width", "2"],
  ])
    line.style.setProperty(name, value);
  return s(
    "svg",
    {
      class: "chart",
      viewBox: "0 0 400 74",
      role: "img",
      "aria-label": `Used since ${wall(first)}: from ${known[0][1]} to ${known.at(-1)[1]} percent`,
    },
    s("line", { x1: 0, x2: 400, y1: 72, y2: 72 }),
    line,
  );
}
