// One workflow: its graph, its sessions, its messages, and decisions for a person.

import { ask, get, post } from "../lib/api.js";
import { fill, h, quoted } from "../lib/dom.js";
import { when } from "../lib/time.js";
import { plainFacts, value } from "../parts/object-facts.js";
import { attempt, confirm } from "../parts/dialogs.js";
import { graph, stateMark, stateWords } from "../parts/graph.js";
import { chip } from "../parts/marks.js";
import { topicMessages } from "../parts/messages.js";
import { body, button, empty, facts, link, panel, table } from "../parts/elements.js";

export default async function workflow(visit) {
  const [id] = visit.params;
  const path = (below = "") => `/api/workflows/${encodeURIComponent(id)}${below}`;
  const top = h("div");
  const picture = h("div");
  const sessions = h("div");
  const handlers = h("div");
  const messages = topicMessages(visit, path);
  const act = (below, words, given) =>
    attempt(() => post(path(below), given), words).then(() => load().catch(visit.ignore));
  const drop = async () => {
    if (!(await confirm(`Delete ${id}?`, "A run in progress may finish; past runs stay in the ledger. Its messages are deleted.", "Delete", "Keep the workflow"))) return;
    if (await attempt(() => ask("DELETE", path()), `${id} was deleted`)) location.hash = "#/workflows";
  };
  const load = async () => {
    const [workflow, data] = await Promise.all([
      get(path(), {}, visit.signal),
      get(path("/sessions"), { limit: 30 }, visit.signal),
    ]);
    // An uncertain side effect is resolved below; until then resuming is refused.
    const isUncertain = workflow.openRun?.awaits === "uncertain";
    const isStarted = ["active", "stopped"].includes(workflow.status);
    const isResting = !isStarted || (workflow.error && !isUncertain);
    fill(
      top,
      h("nav", { class: "crumb" }, h("a", { href: "#/workflows" }, "Workflows"), " / "),
      h(
        "div",
        { class: "head" },
        h(
          "div",
          { class: "words" },
          h("h1", null, quoted(id)),
          h("div", { class: "row" }, chip(stateMark(workflow), { boxed: true, words: stateWords(workflow) })),
        ),
        h(
          "div",
          { class: "actions" },
          button("Run now", () => act("/run", "Session requested"), { kind: "primary", symbol: "play" }),
          isResting ? button("Resume", () => act("/resume", "Resumed"), { symbol: "play" }) : null,
          isStarted ? button("Pause", () => act("/pause", "Paused"), { symbol: "pause" }) : null,
          workflow.origin === "rest" ? link("Edit", `#/workflows/${encodeURIComponent(id)}/edit`, { symbol: "edit" }) : null,
          workflow.origin === "rest" ? button("Delete", drop, { kind: "danger", symbol: "trash" }) : null,
        ),
      ),
    );
    const limited = workflow.limitedUntil
      ? h("div", { class: "note" }, "Its consumers publish to their own topics too often; they continue ", when(workflow.limitedUntil))
      : null;
    fill(picture, body(workflow.error ? h("div", { class: "note bad" }, quoted(workflow.error)) : null, limited, graph(workflow)));
    await messages.load(workflow);
    const waiting = [workflow.openRun, ...data.sessions.flatMap((session) => session.runs)].filter(
      (run) => run?.awaits === "uncertain",
    );
    fill(
      sessions,
      [...new Map(waiting.map((run) => [run.runId, run])).values()].map((run) =>
        h(
          "div",
          { class: "body" },
          h(
            "div",
            { class: "note bad" },
            h(
              "div",
              { class: "stack grow" },
              h(
                "p",
                null,
                quoted(run.handler),
                ` may or may not have run its side effect (run ${run.runId}). What happened?`,
              ),
              h(
                "div",
                { class: "row" },
                [
                  ["retry", "Try again"],
                  ["didNotHappen", "It did not happen"],
                  ["skip", "Skip it"],
                ].map(([choice, words]) =>
                  button(words, () => act(`/runs/${run.runId}/resolve`, "Noted", { choice }), { kind: "small" }),
                ),
              ),
            ),
          ),
        ),
      ),
      data.sessions.length
        ? table(
            "Sessions",
            ["Started", "Trigger", "Outcome", "Runs"],
            data.sessions.map((session) => [
              when(session.startedAt),
              session.kind,
              chip({ completed: "succeeded", failed: "failed" }[session.result] ?? "running", {
                words: session.result ?? "running",
              }),
              [
                h(
                  "ul",
                  null,
                  session.runs.map((run) =>
                    h(
                      "li",
                      null,
                      h("a", { href: `#/runs/${run.runId}` }, quoted(run.handler)),
                      h(
                        "span",
                        { class: "soft small" },
                        ` ${run.phase}${run.reserved ? `, ${run.reserved} taken` : ""}${run.published ? `, ${run.published} published` : ""}`,
                      ),
                      run.ui == null ? null : shownByHandler(run.ui),
                    ),
                  ),
                ),
                session.error ? quoted(session.error, { class: "small" }) : null,
              ],
            ]),
          )
        : empty(
            "flow",
            "No sessions yet",
            "A session runs the producers that are due, then every consumer with pending messages.",
          ),
    );
    fill(
      handlers,
      body(
        ...[...Object.entries(workflow.producers ?? {}), ...Object.entries(workflow.consumers ?? {})].map(([name, handler]) =>
          h("div", { class: "stack tight" }, h("h3", null, quoted(name)), handlerFacts(handler)),
        ),
      ),
    );
  };
  await visit.keep(["workflows"], load, { gap: 1_000 });
  return {
    title: id,
    element: h(
      "div",
      { class: "stack" },
      top,
      panel(null, picture),
      h("div", { class: "columns" }, panel("Sessions", sessions), panel("Handlers", handlers)),
      panel("Messages", messages.element),
      h("div", null, link("All workflows", "#/workflows", { kind: "quiet" })),
    ),
  };
}

/** A producer or a consumer in words. */
function handlerFacts(handler) {
  const list = (names) => (names?.length ? quoted(names.join(", ")) : null);
  const isConsumer = Boolean(handler.subscribe);
  return facts([
    ["Kind", isConsumer ? "consumer" : "producer"],
    ["Reads", list(handler.subscribe)],
    ["Publishes to", list(handler.publishes)],
    ["Side effect", isConsumer ? (handler.mutate === false ? "none" : "yes, at most once") : null],
    ["Next run", handler.nextRun ? when(handler.nextRun) : null],
    ["Wakes", handler.wakeAt ? when(handler.wakeAt) : null],
    ["Due", handler.queued ? "it runs in the next session" : handler.dirty ? "messages are waiting for it" : null],
    ["On hold", handler.heldUntil ? ["until ", when(handler.heldUntil)] : null],
    ["Last run", handler.lastRun ? when(handler.lastRun) : "never"],
    ["State", handler.state == null ? null : value(handler.state)],
    ["Last error", handler.lastError ? quoted(handler.lastError) : null],
  ]);
}

/** What a handler wants to show: its fields, or its text. */
function shownByHandler(ui) {
  return typeof ui === "object" && !Array.isArray(ui)
    ? plainFacts(ui)
    : h("p", { class: "small" }, quoted(typeof ui === "string" ? ui : JSON.stringify(ui)));
}
