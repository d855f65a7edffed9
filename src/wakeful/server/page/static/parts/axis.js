// Draws the timeline on a canvas: the time axis, the rows and their marks, at most once per frame. It makes no requests.

import { DAY, HOUR, MINUTE, SECOND, format } from "../lib/time.js";
import { GRAVITY, SHAPES } from "./marks.js";

export const ROW = 34;
const CELL = 9; // marks closer than this many pixels are merged
const STEPS = [
  10 * SECOND,
  30 * SECOND,
  MINUTE,
  5 * MINUTE,
  10 * MINUTE,
  30 * MINUTE,
  HOUR,
  3 * HOUR,
  6 * HOUR,
  12 * HOUR,
  DAY,
  2 * DAY,
  7 * DAY,
];
const DAY_LABELS = [{ weekday: "short", day: "numeric", month: "short" }, { weekday: "short", day: "numeric" }, { day: "numeric" }];
const paths = new Map();

function shape(outcome) {
  if (!paths.has(outcome)) paths.set(outcome, new Path2D(SHAPES[outcome] ?? SHAPES.unknown));
  return paths.get(outcome);
}

/** The colours of the scheme, read again when it changes. */
export function colours() {
  const probe = document.createElement("i");
  document.body.append(probe);
  const read = (name) => {
    probe.style.setProperty("color", `var(--${name})`);
    return getComputedStyle(probe).color;
  };
  const names = [
    ...GRAVITY,
    "ink",
    "soft",
    "faint",
    "line",
    "line-strong",
    "panel",
    "sunken",
    "dawn",
    "accent",
    "accent-wash",
  ];
  const scheme = Object.fromEntries(names.map((name) => [name, read(name)]));
  scheme.font = getComputedStyle(document.body).fontFamily;
  probe.remove();
  return scheme;
}

/** A canvas the size of its container, sharp on every screen. */
export function fit(canvas, width, height) {
  const ratio = devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.setProperty("width", `${width}px`);
    canvas.style.setProperty("height", `${height}px`);
  }
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  return pen;
}

/** A scale between two instants over a width in pixels. */
export class Scale {
  constructor(from, until, width) {
    Object.assign(this, { from, until, width });
    this.perPixel = (until - from) / Math.max(1, width);
  }

  x(ms) {
    return (ms - this.from) / this.perPixel;
  }

  time(x) {
    return this.from + x * this.perPixel;
  }

  /** Grid lines: a step that leaves room for labels, in local time. */
  ticks() {
    const step = STEPS.find((candidate) => candidate / this.perPixel >= (candidate < HOUR ? 74 : 46)) ?? STEPS.at(-1);
    if (step >= DAY) return []; // days are labelled above
    const shift = new Date(this.from).getTimezoneOffset() * MINUTE;
    const words = format({ hour: "2-digit", minute: "2-digit", ...(step < MINUTE ? { second: "2-digit" } : {}) });
    const ticks = [];
    const first = Math.ceil((this.from - shift) / step) * step + shift;
    for (let tick = first; tick < this.until && ticks.length < 100; tick += step) {
      ticks.push({ at: tick, words: words.format(tick) });
    }
    return ticks;
  }

  /** Midnights, for the upper line of the axis. */
  days() {
    const days = [];
    const day = new Date(this.from);
    day.setHours(0, 0, 0, 0);
    for (let n = 0; n < 60 && day.getTime() < this.until; n += 1) {
      days.push(day.getTime());
      day.setDate(day.getDate() + 1);
    }
    return days;
  }
}

/** The axis: days above, hours below, now, DST changes, windows of quota slots. */
export function drawAxis(pen, scale, colour, now, { changes = [], windows = [] } = {}) {
  pen.font = `600 12px ${colour.font}`;
  pen.textBaseline = "middle";
  const days = scale.days().map((day, index, all) => ({
    day,
    start: Math.max(0, scale.x(day)),
    end: index + 1 < all.length ? scale.x(all[index + 1]) : scale.width,
  }));
  const indent = (parts) => (parts === DAY_LABELS.at(-1) ? 3 : 7);
  const fits = (parts) => ({ day, start, end }) => end - start >= pen.measureText(format(parts).format(day)).width + 2 * indent(parts);
  const widest = [...days].sort((a, b) => b.end - b.start - (a.end - a.start)).slice(0, 1);
  const whole = days.length > 2 ? days.slice(1, -1) : widest; // the first and the last may be cut off
  const style = DAY_LABELS.find((parts) => whole.every(fits(parts))) ?? DAY_LABELS.at(-1);
  for (const one of days) {
    const { day, start } = one;
    if (!fits(style)(one)) continue;
    const words = format(style).format(day);
    pen.fillStyle = colour.ink;
    pen.fillText(words, start + indent(style), 13);
    pen.fillStyle = colour["line-strong"];
    if (scale.x(day) > 0) pen.fillRect(Math.round(scale.x(day)), 2, 1, 42);
  }
  pen.font = `500 11.5px ${colour.font}`;
  pen.textAlign = "center";
  const nowX = scale.x(now);
  for (const tick of scale.ticks()) {
    const x = scale.x(tick.at);
    pen.fillStyle = colour["line-strong"];
    pen.fillRect(Math.round(x), 41, 1, 5);
    pen.fillStyle = colour.soft;
    if (x > 20 && x < scale.width - 20 && Math.abs(x - nowX) > 44) pen.fillText(tick.words, x, 32);
  }
  for (const quotaWindow of windows) {
    pen.fillStyle = colour.waiting;
    pen.globalAlpha = 0.85;
    pen.fillRect(scale.x(quotaWindow.from), 42, Math.max(2, scale.x(quotaWindow.until) - scale.x(quotaWindow.from) - 2), 4);
    pen.globalAlpha = 1;
  }
  for (const change of changes) {
    const x = scale.x(change.at);
    pen.fillStyle = colour.unconfirmed;
    pen.beginPath();
    pen.moveTo(x - 5, 0);
    pen.lineTo(x + 5, 0);
    pen.lineTo(x, 7);
    pen.fill();
    pen.textAlign = "left";
    pen.fillText(`clock ${change.by > 0 ? "+" : "−"}${Math.abs(change.by)} min`, x + 8, 8);
    pen.textAlign = "center";
  }
  if (nowX > -20 && nowX < scale.width + 20) {
    const words = format({ hour: "2-digit", minute: "2-digit" }).format(now);
    pen.font = `700 11.5px ${colour.font}`;
    pen.fillStyle = colour.dawn;
    pen.beginPath();
    pen.roundRect(nowX - 22, 23, 44, 18, 9);
    pen.fill();
    pen.fillStyle = colour.panel;
    pen.fillText(words, nowX, 32.5);
  }
  pen.textAlign = "left";
}

/** The background of the rows: grid lines, the past shaded, now. */
export function drawField(pen, scale, colour, now, height, { changes = [], windows = [] } = {}) {
  const nowX = Math.min(scale.width, Math.max(0, scale.x(now)));
  pen.fillStyle = colour.sunken;
  pen.globalAlpha = 0.55;
  pen.fillRect(0, 0, nowX, height);
  pen.globalAlpha = 1;
  for (const quotaWindow of windows) {
    pen.fillStyle = colour["accent-wash"];
    pen.globalAlpha = 0.4;
    pen.fillRect(scale.x(quotaWindow.from), 0, scale.x(quotaWindow.until) - scale.x(quotaWindow.from), height);
    pen.globalAlpha = 1;
  }
  pen.fillStyle = colour.line;
  for (const tick of scale.ticks()) pen.fillRect(Math.round(scale.x(tick.at)), 0, 1, height);
  pen.fillStyle = colour["line-strong"];
  for (const day of scale.days()) if (scale.x(day) > 0) pen.fillRect(Math.round(scale.x(day)), 0, 1, height);
  pen.setLineDash([4, 4]);
  pen.strokeStyle = colour.unconfirmed;
  for (const change of changes) {
    pen.beginPath();
    pen.moveTo(scale.x(change.at), 0);
    pen.lineTo(scale.x(change.at), height);
    pen.stroke();
  }
  pen.setLineDash([]);
}

/** Days on which a schedule does not run. */
function hatch(pen, scale, colour, { from, until }, top) {
  const [left, right] = [Math.max(0, scale.x(from)), Math.min(scale.width, scale.x(until))];
  if (right <= left) return;
  pen.save();
  pen.beginPath();
  pen.rect(left, top, right - left, ROW - 1);
  pen.clip();
  pen.strokeStyle = colour["line-strong"];
  pen.beginPath();
  for (let x = left - ROW; x < right; x += 8) {
    pen.moveTo(x, top + ROW);
    pen.lineTo(x + ROW, top);
  }
  pen.stroke();
  pen.restore();
}

export function drawNow(pen, scale, colour, now, height) {
  const x = scale.x(now);
  if (x < 0 || x > scale.width) return;
  pen.fillStyle = colour.dawn;
  pen.fillRect(Math.round(x) - 1, 0, 2, height);
}

/** One row. Returns what was drawn where, for hit testing. */
export function drawRow(pen, scale, colour, row, top, now, isPointed) {
  const middle = top + ROW / 2;
  if (isPointed) {
    pen.fillStyle = colour["accent-wash"];
    pen.globalAlpha = 0.55;
    pen.fillRect(0, top, scale.width, ROW);
    pen.globalAlpha = 1;
  }
  for (const days of row.excluded) hatch(pen, scale, colour, days, top);
  pen.fillStyle = colour.line;
  pen.fillRect(0, top + ROW - 1, scale.width, 1);
  dense(pen, scale, colour, row.runs.length ? Math.max(scale.from, row.createdAt) : Infinity, row.wholeSince, middle);
  const last = row.planned.at(-1);
  if (last !== undefined)
    dense(pen, scale, colour, row.wholeUntil >= scale.until ? Infinity : Math.max(last, now), scale.until, middle);
  const cells = gather(scale, row, now);
  for (const cell of cells) drawCell(pen, scale, colour, cell, middle);
  return cells;
}

/** A dotted line for data beyond the loaded range. */
function dense(pen, scale, colour, from, until, middle) {
  const [left, right] = [Math.max(0, scale.x(from)), Math.min(scale.width, scale.x(until))];
  if (!(right - left > 6)) return;
  pen.fillStyle = colour.faint;
  pen.globalAlpha = 0.55;
  for (let x = left + 4; x < right - 2; x += 6) pen.fillRect(x, middle - 1, 2, 2);
  pen.globalAlpha = 1;
}

/** Overlapping marks, merged. */
function gather(scale, row, now) {
  const cells = [];
  const put = (ms, outcome, what) => {
    const x = scale.x(ms);
    if (x < -CELL || x > scale.width + CELL) return;
    const near = cells.at(-1);
    if (near && Math.abs(near.x - x) < CELL && near.isPlanned === (outcome === "planned")) {
      near.size += 1;
      if (GRAVITY.indexOf(outcome) < GRAVITY.indexOf(near.outcome)) Object.assign(near, { outcome, what });
    } else cells.push({ x, ms, outcome, what, size: 1, isPlanned: outcome === "planned" });
  };
  for (let index = row.runs.length - 1; index >= 0; index -= 1) {
    const run = row.runs[index];
    put(run.count > 1 ? run.plannedAt : (run.startedAt ?? run.plannedAt), run.outcome, run);
  }
  for (const planned of row.planned) if (planned >= now - MINUTE) put(planned, "planned", { plannedAt: planned });
  return cells;
}

/** A run that started late: a line from its planned time. */
function delay(pen, scale, planned, started, middle) {
  if (started - planned < CELL) return;
  pen.globalAlpha = 0.7;
  pen.fillRect(Math.max(0, planned), middle - 0.5, started - Math.max(0, planned), 1);
  if (planned >= 0) pen.fillRect(planned, middle - 4, 1, 8);
  pen.globalAlpha = 1;
}

function drawCell(pen, scale, colour, cell, middle) {
  const tint = colour[cell.outcome] ?? colour.soft;
  pen.fillStyle = tint;
  const run = cell.what;
  const [start, end] =
    run.count > 1
      ? [run.plannedAt, run.plannedUntil]
      : [run.startedAt, run.endedAt ?? (run.outcome === "running" ? Date.now() : null)];
  if (start && end && scale.x(end) - scale.x(start) > 3) {
    const left = Math.max(0, scale.x(start));
    pen.globalAlpha = 0.32;
    pen.beginPath();
    pen.roundRect(left, middle - 4, Math.min(scale.width, scale.x(end)) - left, 8, 4);
    pen.fill();
    pen.globalAlpha = 1;
  }
  if (run.startedAt && run.count === 1) delay(pen, scale, scale.x(run.plannedAt), cell.x, middle);
  const size = cell.isPlanned ? 0.72 : 0.86;
  pen.save();
  pen.translate(cell.x - 8 * size, middle - 8 * size);
  pen.scale(size, size);
  pen.fill(shape(cell.outcome), "evenodd");
  pen.restore();
  if (cell.size > 1) {
    pen.globalAlpha = 0.5;
    pen.fillRect(cell.x - 4, middle + 9, Math.min(8, 2 + cell.size), 2);
    pen.globalAlpha = 1;
  }
}
