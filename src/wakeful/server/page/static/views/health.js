// Nodes and health: who ticks, whether the clock is alive, what is amiss, and by which settings.

import { get } from "../lib/api.js";
import { fill, h, quoted } from "../lib/dom.js";
import { has } from "../lib/parts-there.js";
import { length, when } from "../lib/time.js";
import { chip } from "../parts/marks.js";
import { body, button, empty, facts, head, panel, table } from "../parts/small.js";

const LEVELS = { ok: ["succeeded", "fine"], warn: ["unconfirmed", "look here"], bad: ["failed", "needs help"] };

export default async function health(visit) {
  const state = h("div");
  const nodes = h("div");
  const settings = h("div");
  const load = async () => {
    const told = await get("/healthz", {}, visit.signal).catch((error) =>
      error.status === 503 ? { ...error.body, status: "failing" } : Promise.reject(error),
    );
    const list = await get("/api/nodes", {}, visit.signal);
    fill(
      state,
      body(
        told.problems?.map((one) => h("div", { class: "note bad" }, quoted(one))),
        facts([
          ["Clock", told.isTicking ? "ticks" : "stands still"],
          ["Last tick", told.lastTick ? when(told.lastTick) : null],
          ["Lag", told.lagMs === undefined || told.lagMs === null ? null : length(told.lagMs)],
          ["Running", told.running],
          ["Waiting", told.waiting],
          [
            "Stuck",
            told.stuckRuns?.length
              ? told.stuckRuns.map((id) => h("a", { href: `#/runs/${id}` }, `run ${id} `))
              : told.stuck === undefined
                ? null
                : "none",
          ],
          [
            "Store",
            told.isStoreWritable === undefined ? null : told.isStoreWritable ? "can be written" : "cannot be written",
          ],
        ]),
      ),
      told.findings?.length
        ? table(
            "Findings",
            ["Level", "Looked at", "Found"],
            told.findings.map((one) => [
              chip(LEVELS[one.level][0], { words: LEVELS[one.level][1] }),
              one.name,
              [quoted(one.sentence), one.cure ? h("p", { class: "soft small" }, quoted(one.cure)) : null],
            ]),
          )
        : null,
    );
    fill(
      nodes,
      list.nodes.length
        ? table(
            "Nodes",
            ["Node", "Process", "Since", "Last tick", "Lag", "Load", "Lease"],
            list.nodes.map((node) => [
              [chip(node.isAlive ? "succeeded" : "failed", { words: "" }), quoted(node.name)],
              quoted(`${node.host} · ${node.pid}`),
              when(node.startedAt),
              when(node.lastTick),
              length(node.lagMs),
              `${node.running} of ${node.capacity}`,
              when(node.leaseUntil),
            ]),
          )
        : empty("health", "Nobody ticks", "No process holds the clock. Start one, and it shows up here.", {
            command: "wakeful up",
          }),
    );
  };
  const loadSettings = async () => {
    if (!(await has("/api/config"))) return;
    const told = await get("/api/config", {}, visit.signal);
    fill(
      settings,
      told.refused?.length
        ? body(
            h(
              "div",
              { class: "note bad" },
              h(
                "div",
                null,
                h("b", null, "The settings file was changed and could not be accepted:"),
                h(
                  "ul",
                  null,
                  told.refused.map((one) => h("li", null, quoted(one))),
                ),
              ),
            ),
          )
        : null,
      body(
        Object.entries(told.settings).map(([section, values]) =>
          h(
            "details",
            null,
            h("summary", null, h("b", null, `[${section}]`)),
            h("pre", { class: "text" }, quoted(JSON.stringify(values, null, 2))),
          ),
        ),
      ),
    );
  };
  await Promise.all([visit.keep(["nodes", "alerts", "runs"], load, { gap: 3_000 }), loadSettings()]);
  return {
    title: "Nodes and health",
    element: h(
      "div",
      { class: "stack" },
      head(
        "Nodes and health",
        "Whether the clock is alive, who holds it, and what is amiss.",
        button("Look again", () => Promise.all([load(), loadSettings()]).catch(visit.ignore), { symbol: "again" }),
      ),
      panel("Health", state),
      panel("Nodes", nodes),
      panel("Settings", settings),
    ),
  };
}
