// Validation errors in a form: each at its field, the others above the form.

import { Problem } from "../lib/api.js";
import { fill, h, quoted } from "../lib/dom.js";

/** The field errors of a Problem. */
export const faultsOf = (error) =>
  error instanceof Problem && error.errors.length
    ? error.errors
    : [{ field: error.field ?? "", message: error.message }];

/** Show errors in a form; an empty list clears it. Those at controls that are not reached yet wait; returns how many. */
export function showFaults(form, general, faults, { isAtFields = true, isReached = () => true } = {}) {
  for (const control of form.querySelectorAll("[data-field]")) {
    control.removeAttribute("aria-invalid");
    form.querySelector(`#${control.id}-wrong`)?.replaceChildren();
  }
  const homeless = [];
  let waiting = 0;
  for (const fault of faults) {
    const control = isAtFields || fault.field === "slug" ? controlOf(form, fault.field) : null;
    if (!control) {
      homeless.push(fault);
      continue;
    }
    if (!isReached(control)) {
      waiting += 1;
      continue;
    }
    control.setAttribute("aria-invalid", "true");
    control.closest("details")?.setAttribute("open", "");
    form.querySelector(`#${control.id}-wrong`).append(quoted(fault.message));
  }
  general.classList.toggle("hidden", homeless.length === 0);
  fill(
    general,
    homeless.map((fault) =>
      h("li", { class: "note bad" }, quoted(fault.field ? `${fault.field}: ${fault.message}` : fault.message)),
    ),
  );
  return waiting;
}

/** The control of a field: its own, that of one of its parts, or that of its parent. */
function controlOf(form, name) {
  for (let path = name.replace(/\[\d+\]|\.\d+/g, ""); path; path = path.slice(0, Math.max(0, path.lastIndexOf(".")))) {
    const [exact, part] = [`[data-field="${CSS.escape(path)}"]`, `[data-field^="${CSS.escape(path)}."]`];
    const element = form.querySelector(exact) ?? form.querySelector(part);
    if (element) return element;
  }
  return null;
}
