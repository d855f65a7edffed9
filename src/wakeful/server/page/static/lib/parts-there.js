// Which parts this daemon has. It describes its routes itself, so nothing is asked for that is not there.

import { get } from "./api.js";

let known = null;

/** Whether the daemon has this route. */
export async function has(path) {
  known ??= get("/api/openapi.json").then((told) => new Set(Object.keys(told.paths)));
  try {
    return (await known).has(path);
  } catch (error) {
    known = null;
    throw error;
  }
}
