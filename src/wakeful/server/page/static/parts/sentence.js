// How a sentence is understood: what would be created and when it would run, or what has to be asked.

import { ask, post, schedulePath } from "../lib/api.js";
import { h, quoted } from "../lib/dom.js";
import { dollars } from "../lib/money.js";
import { count } from "../lib/text.js";
import { at, localZone, localised, wall, when } from "../lib/time.js";
import { button } from "./elements.js";
import { attempt } from "./dialogs.js";

/** What the daemon understands; null if the text is one word, which is no sentence. */
export const understand = async (text) =>
  /\S\s+\S/.test(text) ? post("/api/understand", { text, timezone: localZone }) : null;

/** Create what was understood, and go to it. */
export async function create({ slug, ...definition }) {
  const isNew = { "If-None-Match": "*" };
  const made = () => ask("PUT", schedulePath(slug), { body: definition, headers: isNew });
  if (await attempt(made, `${slug} was created`)) location.hash = `#/schedules/${slug}`;
}

/** The question, with sentences to choose from: `choose` gets the one that is chosen. */
export const question = ({ unclear: [{ question: words, options }] }, choose) => [
  h("p", { class: "words" }, quoted(words)),
  options.length
    ? h(
        "div",
        { class: "row wrap" },
        options.map((option) => button(option, () => choose(option), { kind: "small" })),
      )
    : null,
];

/** The timing in words, what was assumed, the next times and the cost. */
export function understanding({ definition, description, next, estimate, assumed }) {
  const cost = estimate?.cost === null ? "cost unknown until it has run" : `about ${dollars(estimate?.cost)}`;
  const to = definition.deliver ? `, sent to ${definition.deliver.channel}` : "";
  return [
    h("p", { class: "words" }, quoted(localised(description)), `: ${definition.prompt}`, to),
    assumed.length ? h("p", { class: "soft" }, quoted(localised(`Assumed: ${assumed.join("; ")}.`))) : null,
    h(
      "ol",
      { class: "times" },
      next.map((time) => h("li", null, h("span", null, wall(at(time))), when(time))),
    ),
    estimate?.runs > 1 ? h("p", { class: "soft" }, `30 days: ${count(estimate.runs, "run")}, ${cost}`) : null,
  ];
}
