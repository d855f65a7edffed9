// Where the settings of this daemon are, for empty states that say what to write and into which file.

import { get } from "./api.js";
import { has } from "./routes.js";

let known = null;

/** The path of the settings file, or its name if the daemon does not say. */
export async function settingsFile() {
  known ??= has("/api/config")
    .then((is) => (is ? get("/api/config") : {}))
    .then(({ file }) => file)
    .catch(() => null);
  return (await known) ?? "wakeful.toml";
}
