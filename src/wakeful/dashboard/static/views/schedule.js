// One schedule: what it is, why it stands as it does, when it runs, how it went, and everything that can be done with it.

import { Problem, get, post, remove, schedulePath } from "../lib/api.js";
import { fill, h, quoted, s, throttled } from "../lib/dom.js";
import { actionKind, outcomeWords } from "../lib/text.js";
import { at, length, localZone, wall, when } from "../lib/time.js";
import { RUNGS } from "../parts/ladder.js";
import { attempt, confirm } from "../parts/asking.js";
import { chip, runWords } from "../parts/marks.js";
import { runRow } from "../parts/run.js";
import { body, button, empty, facts, link, panel } from "../parts/small.js";

const RUNS = 25;
const KEPT_MAX = 200;
const READ_BACK = new Set([
  "slug",
  "status",
  "statusReason",
  "lastRun",
  "lastResult",
  "lastError",
  "sessionId",
  "nextRun",
  "consecutiveErrors",
  "createdAt",
  "updatedAt",
  "version",
  "description",
  "next",
  "recent",
]);

export default async function schedule(visit) {
  const [slug] = visit.params;
  const path = (below) => schedulePath(slug, below);
  let one = null;
  let runs = [];
  let following = null;
  const open = new Set();

  const top = h("div");
  const whyWords = h("p", { class: "why", role: "status" });
  const whyAt = h("input", { type: "datetime-local", step: "1", id: "why-at", "aria-label": "An instant" });
  const runList = h("div");
  const nextList = h("div");
  const figures = h("div", { class: "body" });
  const definition = h("div");
  const more = button("Older runs", () => older(), { kind: "small" });

  // --- showing ----------------------------------------------------------------------------------------------------------

  const showTop = () => {
    const isOn = one.enabled && one.status !== "paused";
    fill(
      top,
      h("nav", { class: "crumb", "aria-label": "Where this is" }, h("a", { href: "#/schedules" }, "Schedules"), " / "),
      h(
        "div",
        { class: "head" },
        h(
          "div",
          { class: "words" },
          h("h1", null, quoted(one.slug)),
          h(
            "div",
            { class: "row" },
            chip(one.status, { boxed: true, words: one.status === "disabled" ? "off" : one.status }),
            quoted(one.description ?? "its definition cannot be read any more", { class: "soft" }),
            h("span", { class: "soft" }, one.nextRun ? ["· next ", when(one.nextRun)] : null),
          ),
          one.statusReason ? h("p", null, quoted(one.statusReason)) : null,
        ),
        h(
          "div",
          { class: "actions" },
          button("Run now", () => attempt(() => post(path("/run")), "Asked to run").then(again), {
            kind: "primary",
            symbol: "play",
          }),
          isOn
            ? button("Pause", () => attempt(() => post(path("/pause")), "Paused").then(again), { symbol: "pause" })
            : button("Resume", () => attempt(() => post(path("/resume")), "Goes on from now").then(again), {
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
          "It has not run yet",
          "Every instant it plans ends here, as one row: it ran and how far it got, it was skipped and why, or it was missed and why.",
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
  const showDefinition = () => {
    const kind = actionKind(one);
    const written = Object.fromEntries(Object.entries(one).filter(([name]) => !READ_BACK.has(name)));
    fill(
      definition,
      body(
        facts([
          [
            "Does",
            kind
              ? {
                  prompt: `asks ${one.agent ?? "default"}`,
                  command: "runs a command",
                  http: "sends a request",
                  call: "calls a function",
                  event: "raises an event",
                }[kind]
              : null,
          ],
          ["Errors in a row", one.consecutiveErrors || null],
          ["Session", one.sessionId ? quoted(one.sessionId, { class: "mono" }) : null],
          [
            "Delivers to",
            one.deliver ? quoted([one.deliver.channel, one.deliver.to].filter(Boolean).join(" → ")) : null,
          ],
          ["Made", when(one.createdAt)],
          ["Changed", when(one.updatedAt)],
          ["Version", one.version],
        ]),
        kind === "prompt" ? h("pre", { class: "text" }, quoted(one.prompt)) : null,
        h(
          "details",
          null,
          h("summary", { class: "soft small" }, "As JSON"),
          h("pre", { class: "text", tabindex: 0 }, quoted(JSON.stringify(written, null, 2))),
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
                h("span", null, wall(at(time))),
                zoneOf(one) && zoneOf(one) !== localZone
                  ? h("span", { class: "faint small" }, wall(at(time), zoneOf(one)))
                  : null,
                when(time),
              ),
            ),
          )
        : body(
            h(
              "p",
              { class: "soft" },
              one.schedule?.type === "manual"
                ? "It runs only when it is asked to."
                : one.schedule?.type === "afterReset"
                  ? "It waits for the reset of its quota slot."
                  : "Nothing is planned.",
            ),
          ),
    );
  const showStats = (stats) => {
    const total = Object.values(stats.counts).reduce((sum, n) => sum + n, 0);
    fill(
      figures,
      h(
        "div",
        { class: "figures" },
        figure(stats.successRate === null ? "–" : `${Math.round(stats.successRate * 1000) / 10}%`, "succeeded"),
        figure(length(stats.p50DurationMs), "half take less"),
        figure(length(stats.p95DurationMs), "95 of 100 less"),
        figure(
          stats.streak === 0 ? "–" : String(Math.abs(stats.streak)),
          stats.streak < 0 ? "errors in a row" : "good in a row",
        ),
        figure(total.toLocaleString(), "instants"),
      ),
      durations(runs),
      h(
        "div",
        { class: "row small" },
        Object.entries(stats.counts)
          .filter(([, n]) => n)
          .map(([outcome, n]) => chip(outcome, { words: `${n.toLocaleString()} ${outcomeWords(outcome)}` })),
      ),
    );
  };

  // --- reading ----------------------------------------------------------------------------------------------------------

  const askWhy = async () => {
    const asked = whyAt.value ? new Date(whyAt.value).toISOString() : null;
    try {
      fill(whyWords, quoted((await get(path("/why"), { at: asked }, visit.signal)).sentence));
    } catch (error) {
      if (error instanceof Problem) fill(whyWords, quoted(error.message));
    }
  };
  const load = async () => {
    const [view, page, stats, next] = await Promise.all([
      get(path(""), {}, visit.signal),
      get(path("/runs"), { limit: RUNS }, visit.signal),
      get(path("/stats"), {}, visit.signal),
      get(path("/next"), { count: 10 }, visit.signal),
    ]);
    one = view;
    const fresh = new Set(page.runs.map((run) => run.runId));
    const older = runs.filter(
      (run) => !fresh.has(run.runId) && Number(run.runId) < Number(page.runs.at(-1)?.runId ?? Infinity),
    );
    if (!older.length) following = page.next;
    runs = [...page.runs, ...older].slice(0, KEPT_MAX);
    showTop();
    showRuns();
    showDefinition();
    showNext(one.status === "paused" || !one.enabled ? [] : next.times);
    showStats(stats);
    if (!whyAt.value) await askWhy();
  };
  const older = async () => {
    const page = await get(path("/runs"), { limit: RUNS, cursor: following }, visit.signal);
    following = runs.length + page.runs.length >= KEPT_MAX ? null : page.next;
    runs.push(...page.runs);
    showRuns();
  };
  const again = throttled(
    () => load().catch((error) => (error.status === 404 ? gone() : visit.ignore(error))),
    400,
    visit.signal,
  );
  const gone = () => {
    location.hash = "#/schedules";
  };
  const drop = async () => {
    if (
      !(await confirm(
        `Delete ${slug}?`,
        "A run under way ends as it would have; the ledger keeps what became of every instant. This cannot be taken back.",
        "Delete",
      ))
    )
      return;
    if (await attempt(() => remove(path("")), `${slug} was deleted`)) gone();
  };

  const at0 = visit.query.get("at");
  if (at0 && !Number.isNaN(Date.parse(at0))) whyAt.value = localInput(Date.parse(at0));
  await load();
  if (whyAt.value) await askWhy();
  visit.hear(["runs", "schedules"], (events) => {
    let isMine = false;
    for (const event of events) {
      if (event.stream === "reset" || event.slug === slug) isMine = true;
      const run = event.runId ? runs.find((known) => known.runId === event.runId) : null;
      if (run && event.what === "climbed") {
        climb(run, event);
        isMine = true;
        showRuns();
      }
    }
    if (isMine) again();
  });

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
              "form",
              {
                class: "row",
                onsubmit: (event) => {
                  event.preventDefault();
                  askWhy();
                },
              },
              h("label", { class: "soft small", for: "why-at" }, "Ask about an instant"),
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
        panel("Runs", { actions: more }, runList),
      ),
      h(
        "div",
        { class: "stack" },
        panel("Next ten times", nextList),
        panel("Statistics", figures),
        panel("Definition", definition),
      ),
    ),
  );
  return { title: slug, element };
}

function climb(run, event) {
  if (RUNGS.indexOf(event.rung) <= RUNGS.indexOf(run.rung)) return;
  run.rung = event.rung;
  run.ladder = { ...run.ladder, [event.rung]: event.at };
}

const zoneOf = (one) => one.schedule?.timezone ?? null;
const figure = (value, words) => h("div", null, h("b", null, value), h("span", null, words));

function localInput(ms) {
  const shifted = new Date(ms - new Date(ms).getTimezoneOffset() * 60_000);
  return shifted.toISOString().slice(0, 19);
}

/** How long the last runs took, oldest first, each in the colour of its outcome. */
function durations(runs) {
  const measured = runs
    .filter((run) => run.startedAt && run.endedAt)
    .slice(0, 40)
    .reverse();
  if (measured.length < 2) return null;
  const most = Math.max(1, ...measured.map((run) => at(run.endedAt) - at(run.startedAt)));
  const wide = 400 / Math.max(12, measured.length);
  return s(
    "svg",
    {
      class: "chart",
      viewBox: "0 0 400 74",
      role: "img",
      "aria-label": `How long the last ${measured.length} runs took; the longest ${length(most)}`,
    },
    s("line", { x1: 0, x2: 400, y1: 73, y2: 73 }),
    measured.map((run, index) => {
      const tall = Math.max(3, (66 * (at(run.endedAt) - at(run.startedAt))) / most);
      return s(
        "rect",
        {
          x: index * wide + 1,
          y: 73 - tall,
          width: Math.max(2, wide - 3),
          height: tall,
          rx: 2,
          data: { o: run.outcome },
        },
        s("title", null, `${wall(at(run.startedAt))}: ${runWords(run)}`),
      );
    }),
  );
}
