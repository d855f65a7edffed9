// Times for display: relative, and in local time.

import { h, say } from "./dom.js";

export const SECOND = 1_000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

export const localZone = Intl.DateTimeFormat().resolvedOptions().timeZone;

const formats = new Map();

// In the language's style; `h23`, because `24:00` is not a valid time.
const hourCycle = new Intl.DateTimeFormat(undefined, { hour: "numeric" }).resolvedOptions().hour12 ? "h12" : "h23";

/** A formatter for the browser's language, created once. */
export function format(options, zone = localZone) {
  const key = JSON.stringify([options, zone]);
  if (!formats.has(key)) {
    if (formats.size > 200) formats.clear();
    formats.set(key, new Intl.DateTimeFormat(undefined, { hourCycle, ...options, timeZone: zone }));
  }
  return formats.get(key);
}

const WHOLE = {
  weekday: "short",
  day: "numeric",
  month: "short",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
};

/** An API instant in milliseconds; null stays null. */
export const at = (text) => (text === null || text === undefined ? null : Date.parse(text));

/** Day and time, to the second; with the year, if it differs. */
export function wall(ms, zone) {
  const isThisYear = Math.abs(ms - Date.now()) < 180 * DAY;
  return format(isThisYear ? WHOLE : { ...WHOLE, year: "numeric" }, zone).format(ms);
}

/** The time of day, with the date if it is not today. */
export function clock(ms, zone) {
  const isNear = Math.abs(ms - Date.now()) < 18 * HOUR;
  const options = {
    hour: "2-digit",
    minute: "2-digit",
    ...(isNear ? { second: "2-digit" } : { weekday: "short", day: "numeric", month: "short" }),
  };
  return format(options, zone).format(ms);
}

/** `850 ms`, `4.2 s`, `3 min 10 s`, `2 h 5 min`, `3 d 4 h`. */
export function length(ms) {
  if (ms === null || ms === undefined || Number.isNaN(ms)) return "–";
  const size = Math.max(0, ms);
  if (size < SECOND) return `${Math.round(size)} ms`;
  if (size < 10 * SECOND) return `${(size / SECOND).toFixed(1)} s`;
  if (size < MINUTE) return `${Math.floor(size / SECOND)} s`;
  if (size < HOUR) return pair(size, MINUTE, "min", SECOND, "s");
  if (size < DAY) return pair(size, HOUR, "h", MINUTE, "min");
  return pair(size, DAY, "d", HOUR, "h");
}

function pair(size, big, bigName, small, smallName) {
  const whole = Math.floor(size / big);
  const rest = Math.floor((size % big) / small);
  return rest && whole < 10 ? `${whole} ${bigName} ${rest} ${smallName}` : `${whole} ${bigName}`;
}

/** `in 5 min`, `3 h ago`, `now`. */
export function relative(ms, now = Date.now()) {
  const distance = ms - now;
  const size = Math.abs(distance);
  if (size < 1_500) return "now";
  const words = size < MINUTE ? `${Math.round(size / SECOND)} s` : length(size);
  return distance > 0 ? `in ${words}` : `${words} ago`;
}

const UNITS = { ms: "ms", s: "s", m: "min", h: "h", d: "d" };

/** A duration as the daemon writes it, in the style of the page: `1h30m` as `1 h 30 min`. */
export const spaced = (text) => text.replace(/(\d)(ms|[smhd])(?=\d|$)/g, (_, digit, unit) => `${digit} ${UNITS[unit]} `).trim();

const TOOK = /\btook ((?:[\d.]+(?:ms|[smhd]))+)/g;
const INSTANT = /\d{4}-\d\d-\d\dT[\d:.]+Z/g;
const WALL = /(\d{4}-\d\d-\d\d) (\d\d:\d\d)(:\d\d)?(?:\.\d+)?/g; // a local time; its zone follows it
const FRACTION = /\b(\d\d:\d\d:\d\d)\.\d{3}\b/g; // of a time of day

/** A sentence from the API with its times in the style of the page: instants in local time, others in their zone. */
export const localised = (text) =>
  text
    .replace(INSTANT, (instant) => `${wall(Date.parse(instant))} (${localZone})`)
    .replace(WALL, (_, day, time, seconds = ":00") => wall(Date.parse(`${day}T${time}${seconds}Z`), "UTC"))
    .replace(FRACTION, "$1")
    .replace(TOOK, (_, duration) => `took ${spaced(duration)}`);

/** What happens to a start that no budget is left for. */
export const budgetWords = (freesAt) => `will be skipped: budget used up until ${wall(at(freesAt))}`;

/** An element that shows how far away an instant is, updated live. */
export function when(text, { none = "–" } = {}) {
  const ms = at(text);
  if (ms === null || Number.isNaN(ms)) return h("span", { class: "faint" }, none);
  return h("time", { datetime: text, data: { at: ms }, title: `${wall(ms)} (${localZone})` }, relative(ms));
}

/** Update all such elements once a second. */
export function keepTime() {
  setInterval(() => {
    if (document.hidden) return;
    const now = Date.now();
    for (const element of document.querySelectorAll("time[data-at]"))
      say(element, relative(Number(element.dataset.at), now));
  }, SECOND);
}

const offsets = new Map();

/** UTC offset of a zone in minutes at an instant; 0 for a zone unknown to the browser. */
export function offsetAt(zone, ms) {
  const key = `${zone}|${Math.floor(ms / (15 * MINUTE))}`;
  if (offsets.has(key)) return offsets.get(key);
  if (offsets.size > 5_000) offsets.clear();
  let minutes = 0;
  try {
    const parts = format({ timeZoneName: "longOffset" }, zone).formatToParts(ms);
    const match = /([+-])(\d\d):(\d\d)/.exec(parts.find((part) => part.type === "timeZoneName")?.value ?? "");
    if (match) minutes = (match[1] === "-" ? -1 : 1) * (Number(match[2]) * 60 + Number(match[3]));
  } catch {
    // Unknown to this browser.
  }
  offsets.set(key, minutes);
  return minutes;
}

/** When a zone changes its offset between two instants, by bisection. */
export function zoneChanges(zone, from, until) {
  const changes = [];
  const step = 12 * HOUR;
  for (let start = from; start < until; start += step) {
    const end = Math.min(start + step, until);
    const before = offsetAt(zone, start);
    const after = offsetAt(zone, end);
    if (before === after) continue;
    let [low, high] = [start, end];
    while (high - low > MINUTE) {
      const middle = (low + high) / 2;
      if (offsetAt(zone, middle) === before) low = middle;
      else high = middle;
    }
    changes.push({ at: Math.round(high / (15 * MINUTE)) * 15 * MINUTE, by: after - before, zone });
  }
  return changes;
}
