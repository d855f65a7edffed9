// The event stream: one connection for the whole page, resumed after a disconnect.
// Events are dispatched in batches, once per frame, so that a thousand a second cost as much to render as one. The batch
// is bounded: a background page that cannot keep up gets a `reset` and loads the state again.

import { loginNeeded } from "./api.js";
import { isPressed, released } from "./press.js";

const WAITING_MAX = 5_000;
const PAUSES = [500, 1_000, 2_000, 5_000];
const SILENCE_MAX = 12_000; // the daemon sends something every 5 seconds

export class Stream {
  constructor() {
    this.state = "connecting";
    this.perSecond = 0;
    this.received = 0;
    this._handlers = new Set();
    this._onState = new Set();
    this._waiting = [];
    this._isLost = false;
    this._asked = false;
    this._lastId = null;
    this._broken = 0;
    this._second = 0;
  }

  /** Subscribe to batches: `handler(events)`; a `reset` among them means that some were lost. Returns unsubscribe. */
  hear(handler) {
    this._handlers.add(handler);
    return () => this._handlers.delete(handler);
  }

  /** Subscribe to the connection state: `connecting`, `live`, `broken`. */
  watch(handler) {
    this._onState.add(handler);
    handler(this.state);
    return () => this._onState.delete(handler);
  }

  start() {
    setInterval(() => {
      this.perSecond = this._second;
      this._second = 0;
    }, 1_000);
    this._run();
  }

  async _run() {
    for (;;) {
      try {
        await this._follow();
      } catch {
        // Disconnected: reconnected below.
      }
      this._become("broken");
      const pause = PAUSES[Math.min(this._broken, PAUSES.length - 1)];
      this._broken += 1;
      await new Promise((go) => setTimeout(go, pause));
    }
  }

  async _follow() {
    const patience = new AbortController();
    let timer = setTimeout(() => patience.abort(), SILENCE_MAX);
    try {
      const headers = this._lastId === null ? {} : { "Last-Event-ID": this._lastId };
      const response = await fetch("/api/stream", { headers, cache: "no-store", signal: patience.signal });
      if (response.status === 401) loginNeeded();
      if (!response.ok) throw new Error(String(response.status));
      this._broken = 0;
      this._become("live");
      // Without an id to resume from, earlier events are lost: everything loaded so far is loaded again.
      if (this._lastId === null) this._push({ stream: "reset", what: "reset" });
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return;
        clearTimeout(timer);
        timer = setTimeout(() => patience.abort(), SILENCE_MAX);
        const blocks = (rest + value).split("\n\n");
        rest = blocks.pop();
        for (const block of blocks) this._take(block);
      }
    } finally {
      clearTimeout(timer);
    }
  }

  _take(block) {
    let data = null;
    for (const line of block.split("\n")) {
      if (line.startsWith("id: ")) this._lastId = line.slice(4);
      else if (line.startsWith("data: ")) data = line.slice(6);
    }
    if (data !== null) this._push(JSON.parse(data));
  }

  _push(event) {
    this.received += 1;
    this._second += 1;
    if (this._waiting.length >= WAITING_MAX) {
      this._waiting.length = 0;
      this._isLost = true;
    }
    this._waiting.push(event);
    if (this._asked) return;
    this._asked = true;
    if (document.hidden) setTimeout(() => this._hand(), 500);
    else requestAnimationFrame(() => this._hand());
  }

  _hand() {
    if (isPressed()) {
      released().then(() => this._hand());
      return;
    }
    this._asked = false;
    const events = this._isLost ? [{ stream: "reset", what: "reset" }, ...this._waiting] : this._waiting;
    this._isLost = false;
    this._waiting = [];
    for (const handler of [...this._handlers]) {
      try {
        handler(events);
      } catch (error) {
        console.error(error);
      }
    }
  }

  _become(state) {
    if (state === this.state) return;
    this.state = state;
    for (const handler of this._onState) handler(state);
  }
}
