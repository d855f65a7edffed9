// The plain fields of any object as a list of facts, for data that a view does not lay out by hand.

import { h, quoted } from "../lib/dom.js";
import { when } from "../lib/time.js";
import { facts } from "./elements.js";

const IS_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d/;

/** `nextResetTime` as `next reset time`. */
export const words = (name) => name.replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase();

/** One value in readable form. */
export function value(given) {
  if (given === null || given === undefined) return h("span", { class: "faint" }, "–");
  if (typeof given === "boolean") return given ? "yes" : "no";
  if (typeof given === "number") return given.toLocaleString();
  if (typeof given === "string") return IS_TIME.test(given) ? when(given) : quoted(given);
  return h("code", null, quoted(JSON.stringify(given)));
}

/** The plain fields of an object, except some. */
export function plainFacts(object, leftOut = []) {
  const shown = Object.entries(object).filter(
    ([name, fact]) =>
      !leftOut.includes(name) &&
      fact !== null &&
      (typeof fact !== "object" || (Array.isArray(fact) && fact.length && typeof fact[0] !== "object")),
  );
  return facts(shown.map(([name, fact]) => [words(name), Array.isArray(fact) ? quoted(fact.join(", ")) : value(fact)]));
}
