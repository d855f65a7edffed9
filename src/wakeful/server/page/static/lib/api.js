// Requests to the daemon. Every error response becomes a Problem with its message and fields.

import { released } from "./press.js";

const onLogin = new Set();

/** An error response. */
export class Problem extends Error {
  constructor(status, body) {
    super(body?.error || body?.detail || `The daemon returned ${status}.`);
    this.status = status;
    this.errors = Array.isArray(body?.errors) ? body.errors : [];
    this.body = body ?? {};
  }
}

/** Exchange a token or a one-time code for the session cookie. */
export const logIn = (given) => ask("POST", "/login", { body: given });

/** Log in with the one-time code in the URL, and remove it from the URL. Returns the error, if any. */
export async function logInFromAddress() {
  const code = /^#code=([\w-]+)$/.exec(location.hash)?.[1];
  if (!code) return null;
  history.replaceState(null, "", location.pathname);
  try {
    await logIn({ code });
    return null;
  } catch (error) {
    return error.message;
  }
}

/** Set the callback for when the daemon requires a login. */
export const whenLoginNeeded = (data) => onLogin.add(data);
export const loginNeeded = () => onLogin.forEach((data) => data());

/** A path with its query parameters; empty ones are left out. */
export function address(path, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const asked = new URLSearchParams(given).toString();
  return asked ? `${path}?${asked}` : path;
}

/** Send a request; returns the JSON body and the headers. */
export async function ask(method, path, { query, body, headers, signal } = {}) {
  let response;
  try {
    response = await fetch(address(path, query), {
      method,
      headers: { ...(body === undefined ? {} : { "Content-Type": "application/json" }), ...headers },
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
      redirect: "error",
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, { error: "The daemon cannot be reached. Is it running? Start it with: wakeful up" });
  }
  const text = await response.text();
  if (method === "GET") await released();
  let answer = null;
  try {
    answer = text ? JSON.parse(text) : null;
  } catch {
    // Not JSON, so not from the daemon.
  }
  if (response.status === 401 && path !== "/login") loginNeeded();
  if (!response.ok) throw new Problem(response.status, answer);
  return { body: answer, headers: response.headers, status: response.status };
}

export const get = async (path, query, signal) => (await ask("GET", path, { query, signal })).body;
export const post = async (path, body, query) => (await ask("POST", path, { body, query })).body;
export const remove = async (path) => (await ask("DELETE", path)).body;

/** The API path of a schedule, or of a resource below it. */
export const schedulePath = (slug, below = "") => `/api/schedule/${encodeURIComponent(slug)}${below}`;

let routes = null;

/** Whether this daemon has this route, so that the page requests nothing that does not exist. */
export async function has(path) {
  routes ??= get("/api/routes").then(({ paths }) => new Set(paths));
  try {
    return (await routes).has(path);
  } catch (error) {
    routes = null;
    throw error;
  }
}

let file = null;

/** The path of the settings file, for empty states that say what to write into it; its name if the daemon does not say. */
export async function settingsFile() {
  file ??= has("/api/config")
    .then((is) => (is ? get("/api/config") : {}))
    .then((config) => config.file)
    .catch(() => null);
  return (await file) ?? "wakeful.toml";
}
