// What the palette finds in the daemon: schedules, workflows, quota slots, agents and runs, and what can be done with them.

import { get, has, post, schedulePath } from "./api.js";
import { outcomeWords } from "./text.js";

const FOUND_MAX = 8;
const HEALTHS = ["failing", "late", "waiting"];
const STATUSES = ["running", "paused", "disabled", "invalid"];

const go = (href) => () => {
  location.hash = href;
};
const entry = (words, symbol, kind, act) => ({ words, symbol, kind, act });

/** What can be done with a schedule or a workflow, by the word for it: a request, or a place. */
const SCHEDULE = {
  run: (slug) => ({ words: `Run ${slug} now`, symbol: "play", ask: () => post(schedulePath(slug, "/run")), done: "run requested" }),
  pause: (slug) => ({ words: `Pause ${slug}`, symbol: "pause", ask: () => post(schedulePath(slug, "/pause"), {}), done: "paused" }),
  resume: (slug) => ({ words: `Resume ${slug}`, symbol: "play", ask: () => post(schedulePath(slug, "/resume")), done: "resumed" }),
  edit: (slug) => ({ words: `Edit ${slug}`, symbol: "list", href: `#/schedules/${slug}/edit` }),
};
const workflowPath = (id, below) => `/api/workflows/${encodeURIComponent(id)}${below}`;
const WORKFLOW = {
  run: (id) => ({ words: `Run workflow ${id}`, symbol: "play", ask: () => post(workflowPath(id, "/run")), done: "started" }),
  pause: (id) => ({ words: `Pause workflow ${id}`, symbol: "pause", ask: () => post(workflowPath(id, "/pause")), done: "paused" }),
  resume: (id) => ({ words: `Resume workflow ${id}`, symbol: "play", ask: () => post(workflowPath(id, "/resume")), done: "resumed" }),
  edit: (id) => ({ words: `Edit workflow ${id}`, symbol: "flow", href: `#/workflows/${id}/edit` }),
};

/** A function that finds entries for a text. `attempt` performs a request and reports how it went. */
export function finder(attempt) {
  const deed = (actions, verb, name) => {
    const { words, symbol, ask, done, href } = actions[verb](name);
    return entry(words, symbol, href ? "go to" : "do", href ? go(href) : () => attempt(ask, `${name}: ${done}`));
  };
  /** The deed that was asked for, before the thing itself; or the thing, and the most common deed. */
  const withDeeds = (place, actions, verb, name) =>
    verb ? [deed(actions, verb, name), place] : [place, ...(actions === SCHEDULE ? [deed(actions, "run", name)] : [])];

  const schedules = async (query, verb) => {
    const answer = await get("/api/schedule", { ...query, limit: FOUND_MAX });
    return answer.schedules.flatMap(({ slug, health, status }) => {
      const kind = health === "off" ? outcomeWords(status) : health;
      return withDeeds(entry(slug, "list", kind, go(`#/schedules/${slug}`)), SCHEDULE, verb, slug);
    });
  };
  /** Things with a name in a list of the daemon, which is asked for once while the palette is open. */
  const lists = new Map();
  const named = async (path, key, nameOf) => {
    if (!(await has(path))) return [];
    if (!lists.has(path)) lists.set(path, get(path));
    return (await lists.get(path))[key].map(nameOf);
  };
  const others = async (text, verb) => {
    const isMeant = (name) => text.split(" ").every((part) => name.toLowerCase().includes(part));
    const [workflows, slots, agents] = await Promise.all([
      named("/api/workflows", "workflows", ({ id }) => id),
      named("/api/slots", "slots", ({ name }) => name),
      named("/api/agents", "agents", ({ name }) => name),
    ]);
    return [
      ...workflows
        .filter(isMeant)
        .flatMap((id) => withDeeds(entry(id, "flow", "workflow", go(`#/workflows/${id}`)), WORKFLOW, verb, id)),
      ...slots.filter(isMeant).map((name) => entry(name, "gauge", "quota slot", go("#/slots"))),
      ...agents.filter(isMeant).map((name) => entry(name, "agent", "agent", go("#/agents"))),
    ].slice(0, FOUND_MAX);
  };
  const inState = async (state) => {
    const query = { [HEALTHS.includes(state) ? "health" : "status"]: state };
    const [[name]] = Object.entries(query);
    const all = entry(`All ${state} schedules`, "list", "go to", go(`#/schedules?${name}=${state}`));
    return [all, ...(await schedules(query, "edit")).filter(({ kind }) => kind !== "go to")];
  };

  return async (given) => {
    const text = given.toLowerCase().split(/\s+/).filter(Boolean).join(" ");
    const [first, ...rest] = text.split(" ");
    const verb = rest.length && Object.hasOwn(SCHEDULE, first) ? first : null;
    const name = verb ? rest.join(" ") : text;
    const run = /^(?:run )?(\d{1,18})$/.exec(text)?.[1];
    const found = await Promise.all([
      [...HEALTHS, ...STATUSES].includes(text) ? inState(text) : [],
      run ? [entry(`Run ${run}`, "ledger", "go to", go(`#/runs/${run}`))] : [],
      schedules({ q: name }, verb),
      others(name, verb),
    ]);
    return found.flat();
  };
}
