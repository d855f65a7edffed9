// The context of a view: its route, the stream, and an abort signal. Everything it starts stops when it is left.

import { throttled } from "./dom.js";
import { Problem, address } from "./api.js";

const RETRY = 2_000; // milliseconds until a failed load is retried
const REPAIR = 5_000; // milliseconds between two checks of the data when nothing happened
const LATE_MAX = 5_000; // events kept during a load; with more than this the view loads again

export class Visit {
  constructor(stream, params, query) {
    this.params = params;
    this.query = query;
    this.stream = stream;
    this._end = new AbortController();
    this.signal = this._end.signal;
    this._late = new Set(); // one list for each load in progress
  }

  /** Subscribe to these streams (default: all), in batches; `reset` events are always included. Subscribe before
   * loading: events that arrive during a `loader`'s load are delivered again after it, because the loaded data may be
   * older than the event. So a handler may see an event twice. */
  hear(names, handler) {
    const wanted = names === null ? null : new Set([...names, "reset"]);
    const stop = this.stream.hear((events) => {
      const mine = wanted === null ? events : events.filter((event) => wanted.has(event.stream));
      if (!mine.length) return;
      for (const late of this._late) late.push({ handler, events: mine });
      handler(mine);
    });
    this.signal.addEventListener("abort", stop);
  }

  /** `load`, one at a time: a request during a load runs it once more afterwards. */
  loader(load) {
    let underWay = null;
    let isAskedAgain = false;
    const run = async () => {
      do {
        isAskedAgain = false;
        const late = [];
        this._late.add(late);
        try {
          await load();
        } finally {
          this._late.delete(late);
        }
        this._replay(late);
      } while (isAskedAgain && !this.signal.aborted);
    };
    return () => {
      if (underWay) isAskedAgain = true;
      else
        underWay = run().finally(() => {
          underWay = null;
        });
      return underWay;
    };
  }

  _replay(late) {
    const count = late.reduce((sum, { events }) => sum + events.length, 0);
    for (const { handler, events } of late)
      handler(count > LATE_MAX ? [{ stream: "reset", what: "reset" }] : events);
  }

  /** Load soon, at most once per `gap`; a load that failed temporarily is retried. */
  again(load, gap, failed = this.ignore) {
    const soon = throttled(
      () =>
        load().catch((error) => {
          failed(error);
          if (error instanceof Problem && (error.status === 0 || error.status === 429 || error.status >= 500))
            setTimeout(soon, RETRY);
        }),
      gap,
      this.signal,
    );
    return soon;
  }

  /** Check the data again every few seconds while the page is visible, in case an event was missed. */
  repair(soon) {
    this.every(REPAIR, () => {
      if (!document.hidden && this.stream.state === "live") soon();
    });
  }

  /** Load now, and again on every event of these streams, at most once per `gap`. */
  async keep(names, load, { gap = 1_000, matters = () => true, failed = this.ignore } = {}) {
    const whole = this.loader(load);
    const soon = this.again(whole, gap, failed);
    this.hear(names, (events) => {
      if (events.some((event) => event.stream === "reset" || matters(event))) soon();
    });
    await whole();
    this.repair(soon);
    return soon;
  }

  /** Ignore errors of background loads: the next one shows them; aborts are expected. */
  ignore = (error) => {
    if (error.name !== "AbortError" && !(error instanceof Problem)) console.error(error);
  };

  /** Write the filters of the view into its address, so that it can be linked to and reloaded. */
  setQuery(query) {
    const [path] = location.hash.split("?");
    history.replaceState(null, "", address(path, query));
  }

  /** Whether the data is what it was at the last call: then nothing has to be drawn, and the focus and open details
   * stay as they are. */
  isSame(...data) {
    const text = JSON.stringify(data);
    const is = text === this._shown;
    this._shown = text;
    return is;
  }

  every(ms, action) {
    const timer = setInterval(action, ms);
    this.signal.addEventListener("abort", () => clearInterval(timer));
  }

  leave() {
    this._end.abort();
  }
}
