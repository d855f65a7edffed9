// Workflows: who produces, through which topics, for whom; and what waits where.

import { get } from "../lib/api.js";
import { fill, h, quoted } from "../lib/dom.js";
import { has } from "../lib/parts-there.js";
import { chip } from "../parts/marks.js";
import { graph, looks, standing } from "../parts/graph.js";
import { body, empty, head, notBuilt, panel } from "../parts/small.js";

const WORDS =
  "A workflow has producers that look for something on a schedule and publish it, and consumers that act on it, one message at a time, each side effect at most once.";
const BEGIN = "wakeful workflows deploy inbox.json";

export default async function workflows(visit) {
  if (!(await has("/api/workflows")))
    return {
      title: "Workflows",
      element: h("div", { class: "stack" }, head("Workflows"), panel(null, notBuilt(WORDS))),
    };
  const list = h("div", { class: "stack" });
  const load = async () => {
    const told = await get("/api/workflows", {}, visit.signal);
    const found = told.workflows ?? [];
    fill(
      list,
      found.length
        ? found.map((one) =>
            panel(
              h("a", { href: `#/workflows/${encodeURIComponent(one.id)}` }, quoted(one.id)),
              { actions: chip(looks(one), { words: standing(one) }) },
              body(one.error ? h("div", { class: "note bad" }, quoted(one.error)) : null, graph(one)),
            ),
          )
        : panel(null, empty("flow", "No workflow yet", WORDS, { command: BEGIN })),
    );
  };
  await visit.keep(["workflows"], load, { gap: 1_500 });
  return { title: "Workflows", element: h("div", { class: "stack" }, head("Workflows", WORDS), list) };
}
