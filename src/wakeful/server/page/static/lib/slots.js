// The window of a quota slot.

import { at } from "./time.js";

/** Start and end of the window; if the start is unknown, when it was first seen. Null if the key is cold. */
export function windowOf(slot) {
  const end = at(slot.nextResetTime);
  if (end === null) return null;
  const seen = (slot.history ?? []).find((point) => point.nextResetTime === slot.nextResetTime);
  const start = at(slot.windowStart) ?? at(seen?.at) ?? at(slot.lastPoll);
  return start === null || start >= end ? null : { from: start, until: end, name: slot.name };
}
