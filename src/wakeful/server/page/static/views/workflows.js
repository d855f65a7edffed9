// Workflows: producers, topics, consumers and pending messages.

import { get, has } from "../lib/api.js";
import { fill, h, quoted } from "../lib/dom.js";
import { chip } from "../parts/marks.js";
import { graph, stateMark, stateWords } from "../parts/graph.js";
import { body, empty, head, link, notBuilt, panel } from "../parts/elements.js";

const WORDS =
  "A workflow has producers that publish messages on a schedule, and consumers that act on them, one message at a time, with each side effect at most once.";
const BEGIN = "wakeful workflows deploy inbox.json";

export default async function workflows(visit) {
  if (!(await has("/api/workflows")))
    return {
      title: "Workflows",
      element: h("div", { class: "stack" }, head("Workflows"), panel(null, notBuilt(WORDS))),
    };
  const list = h("div", { class: "stack" });
  const load = async () => {
    const data = await get("/api/workflows", {}, visit.signal);
    if (visit.isSame(data)) return;
    const workflows = data.workflows ?? [];
    fill(
      list,
      workflows.length
        ? workflows.map((workflow) =>
            panel(
              h("a", { href: `#/workflows/${encodeURIComponent(workflow.id)}` }, quoted(workflow.id)),
              { actions: chip(stateMark(workflow), { words: stateWords(workflow) }) },
              body(workflow.error ? h("div", { class: "note bad" }, quoted(workflow.error)) : null, graph(workflow)),
            ),
          )
        : panel(null, empty("flow", "No workflows yet", WORDS, { command: BEGIN })),
    );
  };
  await visit.keep(["workflows"], load, { gap: 1_500 });
  return { title: "Workflows", element: h("div", { class: "stack" }, head("Workflows", WORDS, link("New workflow", "#/new-workflow", { kind: "primary", symbol: "plus" })), list) };
}
