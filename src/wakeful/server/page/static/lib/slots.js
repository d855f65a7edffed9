// What is known of the window of a quota slot.

import { at } from "./time.js";

/** From when until when the window runs: since it was first seen, if nobody knows when it began. Null: it is cold. */
export function windowOf(slot) {
  const end = at(slot.nextResetTime);
  if (end === null) return null;
  const seen = (slot.history ?? []).find((point) => point.nextResetTime === slot.nextResetTime);
  const start = at(slot.windowStart) ?? at(seen?.at) ?? at(slot.lastPoll);
  return start === null || start >= end ? null : { from: start, until: end, name: slot.name };
}
