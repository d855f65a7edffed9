// Which routes this daemon has, so that the page requests nothing that does not exist.

import { get } from "./api.js";

let known = null;

/** Whether the daemon has this route. */
export async function has(path) {
  known ??= get("/api/routes").then(({ paths }) => new Set(paths));
  try {
    return (await known).has(path);
  } catch (error) {
    known = null;
    throw error;
  }
}
