// One run, updated live: what went wrong first, then what happened, and what can be done about it.

import { get, post, schedulePath, settingsFile } from "../lib/api.js";
import { fill, h, quoted } from "../lib/dom.js";
import { actionKind, placeOf } from "../lib/text.js";
import { at, localised, wall, when } from "../lib/time.js";
import { attempt, confirm } from "../parts/dialogs.js";
import { climb } from "../parts/ladder.js";
import { chip } from "../parts/marks.js";
import { runDetails, took } from "../parts/run.js";
import { body, button, copyText, link, panel } from "../parts/elements.js";

export default async function run(visit) {
  const [id] = visit.params;
  const home = homeOf(await settingsFile());
  const top = h("div");
  const why = h("p", { class: "why", role: "status" });
  const whyPanel = panel("Why", body(why));
  whyPanel.tabIndex = -1;
  const details = h("div", { class: "body" });
  let run = null;
  let cure = null;

  const isOfSchedule = () => run.slug !== "heartbeat" && !run.slug.includes(":");
  const isOpen = () => ["running", "waiting"].includes(run.outcome);
  const isWrong = () => isOfSchedule() && ["failed", "timedOut", "unconfirmed", "unknown"].includes(run.outcome);
  const goTo = (started) => {
    location.hash = `#/runs/${started.runId}`;
  };
  const again = async () => {
    let made = null;
    await attempt(async () => {
      made = isOfSchedule() ? await post(schedulePath(run.slug, "/run")) : await post(`/api/runs/${id}/replay`);
    }, `${run.slug}: run requested`);
    if (made) goTo(made);
  };
  const replay = async () => {
    let made = null;
    await attempt(async () => {
      made = await post(`/api/runs/${id}/replay`);
    }, "Replay requested");
    if (made) goTo(made);
  };
  const cancel = async () => {
    if (await confirm(`Cancel run ${id}?`, "Its processes are stopped, and it is not retried.", "Cancel the run", "Keep running"))
      attempt(() => post(`/api/runs/${id}/cancel`), "Cancel requested").then(load);
  };
  const askWhy = async () => {
    const path = isOfSchedule() ? schedulePath(run.slug, "/why") : null;
    const explanation = path && (await get(path, { at: run.plannedAt }, visit.signal).catch(() => null));
    whyPanel.classList.toggle("hidden", !explanation);
    if (explanation) fill(why, quoted(localised(explanation.sentence)));
  };
  /** What to do about a failure: as on the first view, or that nothing has to be done any more. */
  const askCure = async () => {
    if (!isWrong() || cure?.of === run.outcome) return;
    const [schedule, today] = await Promise.all([get(schedulePath(run.slug), {}, visit.signal), get("/api/today", {}, visit.signal)]);
    const item = today.attention.find(({ kind, slug }) => kind === "failing" && slug === run.slug);
    const isOver = schedule.lastOutcome === "succeeded" && at(schedule.lastRun) > at(run.startedAt ?? run.plannedAt);
    cure = { of: run.outcome, words: isOver ? "A later run succeeded: nothing has to be done." : localised(item?.cure ?? CURES[actionKind(schedule)] ?? CURE) };
  };
  const showWhy = () => {
    whyPanel.scrollIntoView({ block: "center" });
    whyPanel.focus({ preventScroll: true });
  };
  const curl = button("Copy as curl", () => copyText(curlOf(run, home), curl), { symbol: "copy" });

  const show = () => {
    fill(
      top,
      h(
        "nav",
        { class: "crumb", "aria-label": "Breadcrumb" },
        h("a", { href: "#/runs" }, "Ledger"),
        " / ",
        h("a", { href: placeOf(run.slug) }, quoted(run.slug)),
        " / ",
      ),
      h(
        "div",
        { class: "head" },
        h(
          "div",
          { class: "words" },
          h("h1", null, `Run ${id}`),
          h(
            "div",
            { class: "row" },
            chip(run.outcome, { boxed: true }),
            h("span", { class: "soft" }, `planned ${wall(at(run.plannedAt))}`),
            run.startedAt
              ? h("span", { class: "soft" }, isOpen() ? ["started ", when(run.startedAt)] : `took ${took(run)}`)
              : null,
          ),
        ),
        h(
          "div",
          { class: "actions" },
          isOpen()
            ? button("Cancel", cancel, { kind: "danger", symbol: "close" })
            : isOfSchedule()
              ? button("Run again", again, { kind: "primary", symbol: "again" })
              : null,
          isOfSchedule() ? button("Why", showWhy, { symbol: "question" }) : null,
          isWrong() ? link("Edit", `#/schedules/${encodeURIComponent(run.slug)}/edit?field=action`, { symbol: "edit" }) : null,
          isOpen() || !isOfSchedule() ? null : button("Replay", replay, { symbol: "play", title: REPLAY }),
          isOfSchedule() ? curl : null,
        ),
      ),
    );
    fill(details, runDetails(run, isWrong() ? cure?.words : null));
  };
  const load = async () => {
    run = await get(`/api/runs/${id}`, {}, visit.signal);
    await askCure().catch(visit.ignore); // its schedule may be gone
    show();
    await askWhy();
  };
  visit.hear(["runs"], (events) => {
    const moved = events.filter((event) => event.runId === id && run && climb(run, event));
    if (moved.length) show();
  });
  await visit.keep(["runs"], load, { gap: 400, matters: (event) => event.runId === id });
  return {
    title: `Run ${id}`,
    element: h(
      "div",
      { class: "stack" },
      top,
      h("div", { class: "columns" }, panel("What happened", details), whyPanel),
    ),
  };
}

/** The folder of the settings, as a word for a shell; the usual one if the daemon does not say. */
function homeOf(file) {
  const folder = file.includes("/") ? file.slice(0, file.lastIndexOf("/")) : "~/.wakeful";
  return /^[\w@%+=:,./~-]+$/.test(folder) ? folder : `'${folder.replaceAll("'", "'\\''")}'`;
}

const CURE = "Fix the cause, then run it again.";
const CURES = { command: "Fix the command, or provide what it needs. Then run it again." };
const REPLAY = "Runs this planned time once more, outside the schedule";

/** The request that runs the same schedule again, for a shell on the daemon's machine. */
const curlOf = (run, home) =>
  `curl -X POST -H "Authorization: Bearer $(cat ${home}/token)" ${location.origin}${schedulePath(run.slug, "/run")}`;
