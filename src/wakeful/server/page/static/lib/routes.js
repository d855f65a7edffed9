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

/** The names of the fields of an object that users write; read-only fields are left out. */
export async function fieldsOf(name) {
  const { properties } = (await get("/api/openapi.json")).components.schemas[name];
  return Object.keys(properties).filter((property) => !properties[property].readOnly);
}
