// Nodes and health: the nodes, the state of the clock, findings, and the settings in effect.

import { get, has } from "../lib/api.js";
import { fill, h, quoted } from "../lib/dom.js";
import { count } from "../lib/text.js";
import { length, localised, when } from "../lib/time.js";
import { chip } from "../parts/marks.js";
import { body, button, empty, facts, head, panel, table } from "../parts/elements.js";
import { countProblems } from "../parts/vitals.js";

const LEVELS = { ok: ["succeeded", "ok"], warn: ["unconfirmed", "warning"], bad: ["failed", "problem"] };

/** The checks whose names say too much or too little. */
const CHECKS = { channels: "inbound channels", deliveries: "outbox", orphans: "left-over runs", lanes: "free lanes" };

const ORDER = ["bad", "warn", "ok"];
const worstFirst = (findings) => findings.toSorted((first, second) => ORDER.indexOf(first.level) - ORDER.indexOf(second.level));

/** The counts in words, as in the bar. */
function verdict(data) {
  const { bad, warnings } = countProblems(data);
  const fine = (data.findings ?? []).filter(({ level }) => level === "ok").length;
  return [
    bad ? count(bad, "problem") : null,
    warnings ? count(warnings, "warning") : null,
    bad || warnings ? `${count(fine, "check")} passed` : "Healthy: every check passed",
  ]
    .filter(Boolean)
    .join(", ");
}

export default async function health(visit) {
  const state = h("div");
  const nodes = h("div");
  const settings = h("div");
  const load = async () => {
    const data = await get("/healthz", {}, visit.signal).catch((error) =>
      error.status === 503 ? { ...error.body, status: "failing" } : Promise.reject(error),
    );
    const list = await get("/api/nodes", {}, visit.signal);
    fill(
      state,
      body(
        h("p", { class: "verdict" }, verdict(data)),
        data.problems?.map((problem) => h("div", { class: "note bad" }, quoted(problem))),
        facts([
          ["Clock", data.isTicking ? "running" : "stopped"],
          ["Last tick", data.lastTick ? when(data.lastTick) : null],
          ["Lag", data.lagMs === undefined || data.lagMs === null ? null : length(data.lagMs)],
          ["Running", data.running],
          ["Waiting", data.waiting],
          [
            "Stuck",
            data.stuckRuns?.length
              ? data.stuckRuns.map((id) => h("a", { href: `#/runs/${id}` }, `run ${id} `))
              : data.stuck === undefined
                ? null
                : "none",
          ],
          [
            "Store",
            data.isStoreWritable === undefined ? null : data.isStoreWritable ? "writable" : "not writable",
          ],
        ]),
      ),
      data.findings?.length
        ? table(
            "Findings",
            ["Level", "Check", "Finding"],
            worstFirst(data.findings).map((finding) => [
              chip(LEVELS[finding.level][0], { words: LEVELS[finding.level][1] }),
              CHECKS[finding.name] ?? finding.name,
              [quoted(localised(finding.sentence)), finding.cure ? h("p", { class: "soft small" }, quoted(localised(finding.cure))) : null],
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
        : empty("health", "No node is ticking", "Start a daemon to see it here.", {
            command: "wakeful up",
          }),
    );
  };
  const loadSettings = async () => {
    if (!(await has("/api/config"))) return;
    const data = await get("/api/config", {}, visit.signal);
    fill(
      settings,
      data.refused?.length
        ? body(
            h(
              "div",
              { class: "note bad" },
              h(
                "div",
                null,
                h("b", null, "The settings file was changed and is invalid; the previous settings stay in effect:"),
                h(
                  "ul",
                  null,
                  data.refused.map((error) => h("li", null, quoted(error))),
                ),
              ),
            ),
          )
        : null,
      body(
        Object.entries(data.settings).map(([section, values]) =>
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
        "The state of the clock and the nodes, and problems with their fixes.",
        button("Refresh", () => Promise.all([load(), loadSettings()]).catch(visit.ignore), { symbol: "again" }),
      ),
      panel("Health", state),
      panel("Nodes", nodes),
      panel("Settings", settings),
    ),
  };
}
