// What a view is given: the place it stands for, the stream, and an end. Whatever it starts is stopped when it leaves.

import { throttled } from "./dom.js";
import { Problem } from "./api.js";

export class Visit {
  constructor(stream, params, query) {
    this.params = params;
    this.query = query;
    this.stream = stream;
    this._end = new AbortController();
    this.signal = this._end.signal;
  }

  /** Hear the events of these streams (all, if none are named), in batches; always also those that say `reset`. */
  hear(names, handler) {
    const wanted = names === null ? null : new Set([...names, "reset"]);
    const stop = this.stream.hear((events) => {
      const mine = wanted === null ? events : events.filter((event) => wanted.has(event.stream));
      if (mine.length) handler(mine);
    });
    this.signal.addEventListener("abort", stop);
  }

  /** Load, and load again whenever something happened in these streams, at most once per `gap`. */
  async keep(names, load, { gap = 1_000, matters = () => true } = {}) {
    const again = throttled(() => load().catch(this.ignore), gap, this.signal);
    this.hear(names, (events) => {
      if (events.some((event) => event.stream === "reset" || matters(event))) again();
    });
    await load();
    return again;
  }

  /** What went wrong in the background is seen by the next look; what was called off is no trouble. */
  ignore = (error) => {
    if (error.name !== "AbortError" && !(error instanceof Problem)) console.error(error);
  };

  every(ms, action) {
    const timer = setInterval(action, ms);
    this.signal.addEventListener("abort", () => clearInterval(timer));
  }

  leave() {
    this._end.abort();
  }
}
