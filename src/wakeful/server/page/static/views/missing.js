// An address that leads nowhere.

import { h } from "../lib/dom.js";
import { empty, link, panel } from "../parts/elements.js";

export default async function missing(visit) {
  const [path] = visit.params;
  const way = link("Today", "#/", { kind: "primary" });
  const words = `This page has no view “${path}”.`;
  return { title: "Not found", element: h("div", { class: "stack" }, panel(null, empty("question", "Not found", words, { action: way }))) };
}
