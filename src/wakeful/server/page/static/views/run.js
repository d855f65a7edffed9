// One run, updated live: what went wrong first, then what happened, and what can be done about it.

import { get, post, schedulePath } from "../lib/api.js";
import { fill, h, quoted } from "../lib/dom.js";
import { placeOf } from "../lib/text.js";
import { at, localised, wall, when } from "../lib/time.js";
import { attempt, confirm } from "../parts/dialogs.js";
import { climb } from "../parts/ladder.js";
import { chip } from "../parts/marks.js";
import { runDetails, took } from "../parts/run.js";
import { body, button, copyText, link, panel } from "../parts/elements.js";

export default async function run(visit) {
  const [id] = visit.params;
  const top = h("div");
  const why = h("p", { class: "why", role: "status" });
  const whyPanel = panel("Why", body(why));
  whyPanel.tabIndex = -1;
  const details = h("div", { class: "body" });
  let run = null;

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
    if (await confirm(`Cancel run ${id}?`, "Its processes are stopped, and it is not retried.", "Cancel the run"))
      attempt(() => post(`/api/runs/${id}/cancel`), "Cancel requested").then(load);
  };
  const askWhy = async () => {
    const path = isOfSchedule() ? schedulePath(run.slug, "/why") : null;
    const explanation = path && (await get(path, { at: run.plannedAt }, visit.signal).catch(() => null));
    whyPanel.classList.toggle("hidden", !explanation);
    if (explanation) fill(why, quoted(localised(explanation.sentence)));
  };
  const showWhy = () => {
    whyPanel.scrollIntoView({ block: "center" });
    whyPanel.focus({ preventScroll: true });
  };
  const curl = button("Copy as curl", () => copyText(curlOf(run), curl), { symbol: "copy" });

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
    fill(details, runDetails(run));
  };
  const load = async () => {
    run = await get(`/api/runs/${id}`, {}, visit.signal);
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

const REPLAY = "Runs this planned time once more, outside the schedule";

/** The request that runs the same schedule again, for a shell on the daemon's machine. */
const curlOf = (run) =>
  `curl -X POST -H "Authorization: Bearer $(cat ~/.wakeful/token)" ${location.origin}${schedulePath(run.slug, "/run")}`;
