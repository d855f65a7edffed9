// One schedule: definition, state and its reason, next times, past runs, and actions.

import { Problem, get, post, remove, schedulePath } from "../lib/api.js";
import { fill, h, quoted } from "../lib/dom.js";
import { deliverText, scheduleForm, written } from "../lib/definition.js";
import { actionKind, actionWords } from "../lib/text.js";
import { at, budgetWords, localZone, localised, wall, when } from "../lib/time.js";
import { climb } from "../parts/ladder.js";
import { chip } from "../parts/marks.js";
import { attempt, confirm } from "../parts/dialogs.js";
import { runRow } from "../parts/run.js";
import { stateChip } from "../parts/schedule-row.js";
import { statistics } from "../parts/statistics.js";
import { body, button, empty, facts, link, panel } from "../parts/elements.js";

const RUNS = 25;
const KEPT_MAX = 200;

export default async function schedule(visit) {
  const [slug] = visit.params;
  const path = (below) => schedulePath(slug, below);
  const form = await scheduleForm();
  let schedule = null;
  let runs = [];
  let following = null;
  let freesAt = null; // when the budget frees that is used up
  const open = new Set();

  const top = h("div");
  const whyWords = h("p", { class: "why", role: "status" });
  const whyAt = h("input", { type: "datetime-local", step: "1", id: "why-at" });
  const runList = h("div");
  const nextList = h("div");
  const figures = h("div", { class: "body" });
  const definition = h("div");
  const more = button("Older runs", () => older(), { kind: "small" });

  // --- showing ----------------------------------------------------------------------------------------------------------

  /** Whether a start at this time will be skipped because a budget is used up. */
  const isUnpaid = (time) => freesAt !== null && schedule.schedule?.type !== "once" && at(time) < at(freesAt);
  const showTop = () => {
    const isOn = schedule.enabled && schedule.status !== "paused";
    fill(
      top,
      h("nav", { class: "crumb", "aria-label": "Breadcrumb" }, h("a", { href: "#/schedules" }, "Schedules"), " / "),
      h(
        "div",
        { class: "head" },
        h(
          "div",
          { class: "words" },
          h("h1", null, quoted(schedule.slug)),
          h(
            "div",
            { class: "row" },
            schedule.health === "ok" && schedule.nextRun && isUnpaid(schedule.nextRun)
              ? chip("skipped", { boxed: true, words: "budget used up" })
              : stateChip(schedule, { boxed: true }),
            quoted(localised(schedule.description ?? "its definition is invalid"), { class: "soft" }),
            h("span", { class: "soft" }, schedule.nextRun ? ["next ", when(schedule.nextRun), isUnpaid(schedule.nextRun) ? ` ${budgetWords(freesAt)}` : null] : null),
          ),
          schedule.statusReason ? h("p", null, quoted(schedule.statusReason)) : null,
        ),
        h(
          "div",
          { class: "actions" },
          button("Run now", () => attempt(() => post(path("/run")), "Run requested").then(again), {
            kind: "primary",
            symbol: "play",
          }),
          isOn
            ? button("Pause", () => attempt(() => post(path("/pause")), "Paused").then(again), { symbol: "pause" })
            : button("Resume", () => attempt(() => post(path("/resume")), "Resumed").then(again), {
                symbol: "play",
              }),
          link("Edit", `#/schedules/${slug}/edit`, { symbol: "edit" }),
          button("Delete", drop, { kind: "danger", symbol: "trash" }),
        ),
      ),
    );
  };
  const showRuns = () => {
    if (!runs.length)
      fill(
        runList,
        empty(
          "ledger",
          "No runs yet",
          "Every planned instant becomes one row here, which says how far it got if it ran, or why it was skipped or missed.",
        ),
      );
    else
      fill(
        runList,
        runs.map((run) =>
          runRow(run, {
            isOpen: open.has(run.runId),
            ontoggle: (is) => (is ? open.add(run.runId) : open.delete(run.runId)),
          }),
        ),
      );
    more.classList.toggle("hidden", following === null);
  };
  const doing = (kind) =>
    ({
      prompt: `Sends a prompt to ${schedule.agent ?? "default"}:`,
      command: "Runs a command:",
      http: "Sends an HTTP request:",
      call: "Calls a function:",
      event: "Queues a system event:",
    })[kind];
  const showDefinition = () => {
    const kind = actionKind(schedule);
    fill(
      definition,
      body(
        kind
          ? [
              h("p", { class: "soft" }, quoted(doing(kind))),
              h("pre", { class: "text" }, quoted(kind === "prompt" ? schedule.prompt : actionWords(schedule))),
            ]
          : null,
        facts([
          ["Consecutive errors", schedule.consecutiveErrors || null],
          ["Session", schedule.sessionId ? quoted(schedule.sessionId, { class: "mono" }) : null],
          [
            "Delivers to",
            schedule.deliver ? quoted(deliverText([schedule.deliver].flat())) : null,
          ],
          ["Created", when(schedule.createdAt)],
          ["Changed", when(schedule.updatedAt)],
          ["Version", schedule.version],
        ]),
        h(
          "details",
          null,
          h("summary", { class: "soft small" }, "As JSON"),
          h("pre", { class: "text", tabindex: 0 }, quoted(JSON.stringify(written(form, schedule), null, 2))),
        ),
      ),
    );
  };
  const showNext = (times) =>
    fill(
      nextList,
      times.length
        ? h(
            "ol",
            { class: "times body" },
            times.map((time) =>
              h(
                "li",
                null,
                h(
                  "span",
                  null,
                  wall(at(time)),
                  zoneOf(schedule) && zoneOf(schedule) !== localZone
                    ? h("small", { class: "faint" }, `${wall(at(time), zoneOf(schedule))} (${zoneOf(schedule)})`)
                    : null,
                  isUnpaid(time) ? h("small", { class: "soft" }, "will be skipped: budget used up") : null,
                ),
                when(time),
              ),
            ),
          )
        : body(
            h(
              "p",
              { class: "soft" },
              schedule.schedule?.type === "manual"
                ? "It runs only on request."
                : schedule.schedule?.type === "afterReset"
                  ? "It waits for the reset of its quota slot."
                  : "No planned times.",
            ),
          ),
    );
  const showStats = (stats) => fill(figures, statistics(stats, runs));

  // --- reading ----------------------------------------------------------------------------------------------------------

  const askWhy = async () => {
    const asked = whyAt.value ? new Date(whyAt.value).toISOString() : null;
    try {
      fill(whyWords, quoted(localised((await get(path("/why"), { at: asked }, visit.signal)).sentence)));
    } catch (error) {
      if (error instanceof Problem) fill(whyWords, quoted(error.message));
    }
  };
  const read = async () => {
    const [view, page, stats, next, explanation] = await Promise.all([
      get(path(""), {}, visit.signal),
      get(path("/runs"), { limit: RUNS }, visit.signal),
      get(path("/stats"), {}, visit.signal),
      get(path("/next"), { count: 10 }, visit.signal),
      get(path("/why"), {}, visit.signal),
    ]);
    schedule = view;
    freesAt = explanation.facts.budgetFreesAt ?? null;
    const fresh = new Set(page.runs.map((run) => run.runId));
    const older = runs.filter(
      (run) => !fresh.has(run.runId) && Number(run.runId) < Number(page.runs.at(-1)?.runId ?? Infinity),
    );
    if (!older.length) following = page.next;
    runs = [...page.runs, ...older].slice(0, KEPT_MAX);
    showTop();
    showRuns();
    showDefinition();
    showNext(schedule.status === "paused" || !schedule.enabled ? [] : next.times);
    showStats(stats);
    if (!whyAt.value) fill(whyWords, quoted(localised(explanation.sentence)));
  };
  const older = async () => {
    const page = await get(path("/runs"), { limit: RUNS, cursor: following }, visit.signal);
    following = runs.length + page.runs.length >= KEPT_MAX ? null : page.next;
    runs.push(...page.runs);
    showRuns();
  };
  const load = visit.loader(read);
  const again = visit.again(load, 400, (error) => (error.status === 404 ? gone() : visit.ignore(error)));
  const gone = () => {
    location.hash = "#/schedules";
  };
  const drop = async () => {
    if (
      !(await confirm(
        `Delete ${slug}?`,
        "A run in progress finishes; past runs stay in the ledger. This cannot be undone.",
        "Delete",
        "Keep the schedule",
      ))
    )
      return;
    if (await attempt(() => remove(path("")), `${slug} was deleted`)) gone();
  };

  const at0 = visit.query.get("at");
  if (at0 && !Number.isNaN(Date.parse(at0))) whyAt.value = localInput(Date.parse(at0));
  visit.hear(["runs", "schedules"], (events) => {
    let isMine = false;
    let isHigher = false;
    for (const event of events) {
      const run = event.runId ? runs.find((known) => known.runId === event.runId) : null;
      if (event.stream === "reset" || event.slug === slug || run) isMine = true;
      if (run && climb(run, event)) isHigher = true;
    }
    if (isHigher) showRuns();
    if (isMine) again();
  });
  await load();
  visit.repair(again);
  if (whyAt.value) await askWhy();

  const element = h(
    "div",
    { class: "stack" },
    top,
    h(
      "div",
      { class: "columns" },
      h(
        "div",
        { class: "stack" },
        panel(
          "Why",
          body(
            whyWords,
            h(
              "details",
              { open: whyAt.value !== "" },
              h("summary", { class: "soft small" }, "Ask about a different time"),
              h(
                "form",
                {
                  class: "row",
                  onsubmit: (event) => {
                    event.preventDefault();
                    askWhy();
                  },
                },
                h("label", { class: "soft small", for: "why-at" }, `Time (${localZone})`),
                h("span", null, whyAt),
                button("Ask", null, { kind: "small", type: "submit" }),
                button(
                  "Now",
                  () => {
                    whyAt.value = "";
                    askWhy();
                  },
                  { kind: "small quiet" },
                ),
              ),
            ),
          ),
        ),
        panel("Runs", { actions: more }, runList),
      ),
      h(
        "div",
        { class: "stack" },
        panel("Next ten times", { actions: h("span", { class: "soft small" }, localZone) }, nextList),
        panel("Statistics", figures),
        panel("Definition", definition),
      ),
    ),
  );
  return { title: slug, element };
}

const zoneOf = (schedule) => schedule.schedule?.timezone ?? null;

function localInput(ms) {
  const shifted = new Date(ms - new Date(ms).getTimezoneOffset() * 60_000);
  return shifted.toISOString().slice(0, 19);
}
