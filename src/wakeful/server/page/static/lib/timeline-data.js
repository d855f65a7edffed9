// The data of the time axis: rows with past runs and planned instants, kept up to date by events.

import { get } from "./api.js";
import { at } from "./time.js";
import { deliveryRows, kindOf } from "./timeline-others.js";

export const ROWS_MAX = 1_000;
const RUNS_MAX = 400;

export class TimelineData {
  /** `kinds`: which rows to show besides schedules. */
  constructor(signal, kinds) {
    this.kinds = kinds;
    this.rows = [];
    this.bySlug = new Map();
    this.byRun = new Map();
    this.next = null;
    this.isFull = false;
    this.q = "";
    this.window = [0, 0];
    this._signal = signal;
    this._asked = 0;
  }

  /** Load the first rows of a search for a span of time. */
  async load(window, q) {
    const mine = ++this._asked;
    const wanted = Math.max(this.q === q ? this.rows.length : 0, 50);
    const rows = [];
    let next = null;
    do {
      const page = await this._page(window, q, next);
      if (mine !== this._asked) return false;
      rows.push(...this._others(page), ...page.rows);
      next = page.next;
    } while (next !== null && rows.length < Math.min(wanted, 200));
    if (this.kinds.has("deliveries")) rows.unshift(...(await deliveryRows(this._signal)).filter((row) => row.slug.includes(q)));
    if (mine !== this._asked) return false;
    this.q = q;
    this.window = window;
    this.rows = [];
    this.bySlug.clear();
    this.byRun.clear();
    this.next = next;
    this._add(rows);
    return true;
  }

  /** Load the next rows; returns whether there were any. */
  async more() {
    if (this.next === null || this.isFull || this._isLoading) return false;
    this._isLoading = true;
    const mine = this._asked;
    try {
      const page = await this._page(this.window, this.q, this.next);
      if (mine !== this._asked) return false;
      this.next = page.next;
      this._add(page.rows);
      return page.rows.length > 0;
    } finally {
      this._isLoading = false;
    }
  }

  /** Reload the rows of workflows, beats and wakes: their events do not name the handler. */
  async renewOthers() {
    const mine = this._asked;
    const [since, until] = this.window;
    const page = await get("/api/timeline", { since: iso(since), until: iso(until), q: this.q, limit: 1 }, this._signal);
    if (mine !== this._asked) return;
    const isRenewed = (row) => isOther(row.slug) && kindOf(row.slug) !== "deliveries";
    const kept = this.rows.filter((row) => !isRenewed(row));
    for (const row of this.rows.filter(isRenewed)) {
      this.bySlug.delete(row.slug);
      for (const run of row.runs) this.byRun.delete(run.runId);
    }
    const deliveries = kept.filter((row) => isOther(row.slug)).length;
    this.rows = kept;
    this._others(page).forEach((row, place) => {
      this.rows.splice(deliveries + place, 0, null);
      this._put(row, deliveries + place);
    });
  }

  /** Reload some rows that changed. */
  async renew(slugs) {
    const known = slugs.filter((slug) => this.bySlug.has(slug) && !isOther(slug)).slice(0, 50);
    if (!known.length) return;
    const [since, until] = this.window;
    const page = await get(
      "/api/timeline",
      { since: iso(since), until: iso(until), slugs: known.join(",") },
      this._signal,
    );
    const bySlug = new Map(page.rows.map((row) => [row.slug, row]));
    for (const slug of known) {
      const place = this.rows.findIndex((row) => row.slug === slug);
      if (place < 0) continue;
      for (const run of this.rows[place].runs) this.byRun.delete(run.runId);
      if (bySlug.has(slug)) this._put(bySlug.get(slug), place);
      else {
        this.rows.splice(place, 1);
        this.bySlug.delete(slug);
      }
    }
  }

  /** Apply a run event. Returns its row, or null if it is not loaded. */
  hear(event) {
    const row = event.slug ? this.bySlug.get(event.slug) : this.byRun.get(event.runId);
    if (!row) return null;
    if (!event.outcome) return row;
    const planned = at(event.plannedAt);
    const ahead = row.planned.indexOf(planned);
    if (ahead >= 0 && event.trigger !== "manual") row.planned.splice(0, ahead + 1);
    row.status = event.outcome === "running" ? "running" : event.outcome === "waiting" ? "waiting" : "idle";
    const run = mark(event);
    const known = row.runs.findIndex(({ runId }) => runId === run.runId);
    if (known >= 0) row.runs[known] = run;
    else row.runs.unshift(run);
    this.byRun.set(run.runId, row);
    while (row.runs.length > RUNS_MAX) this.byRun.delete(row.runs.pop().runId);
    return row;
  }

  /** The rows of a page that are not schedules; each handler of a workflow is named after it. */
  _others(page) {
    return (page.others ?? [])
      .filter((row) => this.kinds.has(kindOf(row.slug)))
      .map((row) => (row.handler ? { ...row, slug: `${row.slug}/${row.handler}` } : row));
  }

  _page([since, until], q, cursor) {
    return get("/api/timeline", { since: iso(since), until: iso(until), q, cursor, limit: 50 }, this._signal);
  }

  _add(rows) {
    for (const row of rows) this._put(row, this.rows.length);
    this.isFull = this.rows.length >= ROWS_MAX;
  }

  _put(loaded, place) {
    const row = {
      ...loaded,
      runs: loaded.runs.map(mark),
      planned: loaded.planned.map(at),
      wholeSince: at(loaded.wholeSince),
      createdAt: at(loaded.createdAt),
      wholeUntil: at(loaded.wholeUntil),
      excluded: (loaded.excluded ?? []).map((days) => ({ from: at(days.from), until: at(days.until) })),
    };
    this.rows[place] = row;
    this.bySlug.set(row.slug, row);
    for (const run of row.runs) this.byRun.set(run.runId, row);
  }
}

/** Whether a row is not a schedule. */
export const isOther = (slug) => kindOf(slug) !== null;

export const iso = (ms) => new Date(ms).toISOString();

function mark(run) {
  return {
    runId: run.runId,
    outcome: run.outcome,
    reason: run.reason,
    error: run.error,
    trigger: run.trigger,
    count: run.count ?? 1,
    plannedAt: at(run.plannedAt),
    plannedUntil: at(run.plannedUntil),
    startedAt: at(run.startedAt),
    endedAt: at(run.endedAt),
  };
}
