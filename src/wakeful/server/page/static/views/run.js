// One run, updated live.

import { get } from "../lib/api.js";
import { fill, h, quoted } from "../lib/dom.js";
import { placeOf } from "../lib/text.js";
import { at, wall } from "../lib/time.js";
import { climb } from "../parts/ladder.js";
import { chip } from "../parts/marks.js";
import { runDetails, took } from "../parts/run.js";
import { body, panel } from "../parts/elements.js";

export default async function run(visit) {
  const [id] = visit.params;
  const top = h("div");
  const details = h("div", { class: "body" });
  let one = null;
  const show = () => {
    fill(
      top,
      h(
        "nav",
        { class: "crumb", "aria-label": "Breadcrumb" },
        h("a", { href: "#/runs" }, "Ledger"),
        " / ",
        h("a", { href: placeOf(one.slug) }, quoted(one.slug)),
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
            chip(one.outcome, { boxed: true }),
            h("span", { class: "soft" }, `planned ${wall(at(one.plannedAt))}`),
            one.startedAt ? h("span", { class: "soft" }, `· took ${took(one)}`) : null,
          ),
        ),
      ),
    );
    fill(details, runDetails(one));
  };
  const load = async () => {
    one = await get(`/api/runs/${id}`, {}, visit.signal);
    show();
  };
  visit.hear(["runs"], (events) => {
    const moved = events.filter((event) => event.runId === id && one && climb(one, event));
    if (moved.length) show();
  });
  await visit.keep(["runs"], load, { gap: 400, matters: (event) => event.runId === id });
  const why = one.slug.includes(":")
    ? null
    : await get(`/api/schedule/${encodeURIComponent(one.slug)}/why`, { at: one.plannedAt }, visit.signal).catch(
        () => null,
      );
  return {
    title: `Run ${id}`,
    element: h(
      "div",
      { class: "stack" },
      top,
      why ? panel("Why", body(h("p", { class: "why" }, quoted(why.sentence)))) : null,
      panel("What happened", details),
    ),
  };
}
