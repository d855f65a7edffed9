// Elements that many views share: heads, buttons, panels, tables, fields, gauges.

import { fill, h, s, say } from "../lib/dom.js";
import { Problem } from "../lib/api.js";
import { icon } from "./icons.js";

/** The head of a view: title, description and actions. */
export function head(title, words, ...actions) {
  return h(
    "div",
    { class: "head" },
    h("div", { class: "words" }, h("h1", null, title), words ? h("p", null, words) : null),
    actions.length ? h("div", { class: "actions" }, actions) : null,
  );
}

export function button(words, onclick, { kind = "", symbol = null, label = null, type = "button", ...more } = {}) {
  const isBare = words === "";
  return h(
    "button",
    {
      type,
      class: `button ${kind}${isBare ? " icon" : ""}`,
      "aria-label": label,
      title: isBare ? label : null,
      onclick,
      ...more,
    },
    symbol ? icon(symbol) : null,
    words,
  );
}

export function link(words, href, { kind = "", symbol = null, ...more } = {}) {
  return h("a", { class: `button ${kind}`, href, ...more }, symbol ? icon(symbol) : null, words);
}

export function panel(title, ...children) {
  const [actions, rest] = children[0]?.actions ? [children[0].actions, children.slice(1)] : [null, children];
  return h("section", { class: "panel" }, title ? h("header", null, h("h2", null, title), actions) : null, rest);
}

export const body = (...children) => h("div", { class: "body" }, children);

/** A choice among several options, made with buttons. `choices`: [value, words] pairs. */
export function choices(label, options, chosen, onchoose) {
  const group = h("div", { class: "choices", role: "group", "aria-label": label });
  const show = (value) => {
    for (const option of group.children) option.setAttribute("aria-pressed", String(option.dataset.value === String(value)));
  };
  fill(
    group,
    options.map(([value, words]) =>
      h(
        "button",
        {
          type: "button",
          data: { value: String(value) },
          onclick: () => {
            show(value);
            onchoose(value);
          },
        },
        words,
      ),
    ),
  );
  show(chosen);
  group.choose = show;
  return group;
}

/** A command or a file's text, with a button that copies it. */
export function copyable(text) {
  const copy = button("Copy", () => copyText(text, copy), { kind: "small", label: "Copy" });
  return h("div", { class: "copyable" }, h("pre", { class: "text", tabindex: 0 }, text), copy);
}

/** Copy text; the button says so for a moment. */
export async function copyText(text, pressed) {
  const words = pressed.lastChild.textContent;
  try {
    await navigator.clipboard.writeText(text);
    say(pressed.lastChild, "Copied");
  } catch {
    say(pressed.lastChild, "Select and copy it"); // not on a secure origin, or not allowed
  }
  setTimeout(() => say(pressed.lastChild, words), 2_000);
}

/** The empty state: what belongs here, and how to start. */
export function empty(symbol, title, words, { command = null, file = null, action = null } = {}) {
  return h(
    "div",
    { class: "empty" },
    icon(symbol),
    h("h2", null, title),
    h("p", null, words),
    file ? h("p", { class: "soft small" }, "In ", h("code", null, file), ":") : null,
    command ? copyable(command) : null,
    action,
  );
}

export const loading = () => h("p", { class: "loading", role: "status" }, "Loading…");

/** An error in place of the content. `isRetried`: the page tries again by itself. */
export function trouble(error, again = null, isRetried = false) {
  const isMissing = error instanceof Problem && error.status === 404;
  return h(
    "div",
    { class: "empty" },
    icon("question"),
    h("h2", null, isMissing ? "Not found" : "Could not load"),
    h("p", null, error.message),
    isRetried ? h("p", { class: "soft small", role: "status" }, "Trying again every few seconds…") : null,
    isMissing ? link("Today", "#/", {}) : again ? button("Try again", again, { symbol: "again" }) : null,
  );
}

/** A notice for a feature that this daemon does not have. */
export function notBuilt(words) {
  return empty(
    "question",
    "Not available",
    `${words} This daemon does not have this feature.`,
  );
}

export function facts(pairs) {
  return h(
    "dl",
    { class: "facts" },
    pairs
      .filter(([, value]) => value !== null && value !== undefined && value !== "")
      .map(([name, value]) => [h("dt", null, name), h("dd", null, value)]),
  );
}

/** A table; rows are lists of cells. */
export function table(label, columns, rows) {
  return h(
    "div",
    { class: "table-wrap", tabindex: 0, role: "region", "aria-label": label },
    h(
      "table",
      { "aria-label": label },
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          columns.map((name) => h("th", { scope: "col" }, name)),
        ),
      ),
      h(
        "tbody",
        null,
        rows.map((cells) =>
          h(
            "tr",
            null,
            cells.map((cell, index) => h("td", { data: { column: columns[index] } }, h("div", null, cell))),
          ),
        ),
      ),
    ),
  );
}

/** A field with its label, a hint, and a place for its error. The control may be a group of boxes. */
export function field(name, label, control, hint = null) {
  if (hint && bare(hint) === bare(label)) hint = null; // it says nothing that the label does not
  const id = `f-${name.replaceAll(".", "-")}`;
  const isGroup = control.getAttribute("role") === "group";
  control.id = id;
  control.dataset.field = name;
  control.setAttribute("aria-describedby", hint ? `${id}-hint ${id}-wrong` : `${id}-wrong`);
  if (isGroup) control.setAttribute("aria-labelledby", `${id}-label`);
  return h(
    "div",
    { class: "field" },
    isGroup ? h("span", { class: "label", id: `${id}-label` }, label) : h("label", { for: id }, label),
    control,
    hint ? h("span", { class: "hint", id: `${id}-hint` }, hint) : null,
    h("span", { class: "wrong", id: `${id}-wrong`, role: "alert" }),
  );
}

const bare = (words) => String(words).toLowerCase().replace(/^the |[.]$/g, "");

/** An arc that fills with a share from 0 to 100. */
export function gauge(percentage, label) {
  const share = Math.min(100, Math.max(0, percentage ?? 0));
  const around = Math.PI * 62;
  const value = s("path", { class: "value", d: "M12 80A62 62 0 0 1 136 80" });
  value.style.setProperty("stroke-dasharray", `${(around * share) / 100} ${around}`);
  if (share >= 95) value.style.setProperty("--tint", "var(--failed)");
  else if (share >= 80) value.style.setProperty("--tint", "var(--dawn)");
  return s(
    "svg",
    { class: "gauge", viewBox: "0 0 148 92", role: "img", "aria-label": label },
    s("path", { class: "track", d: "M12 80A62 62 0 0 1 136 80" }),
    share > 0 ? value : null,
    s("text", { x: 74, y: 78 }, percentage === null || percentage === undefined ? "–" : `${Math.round(percentage)}%`),
  );
}

/** A bar that fills with a share from 0 to 100. */
export function meter(percentage, label) {
  const share = Math.min(100, Math.max(0, percentage ?? 0));
  const fillOf = h("i");
  fillOf.style.setProperty("width", `${share}%`);
  if (share >= 80) fillOf.style.setProperty("background", share >= 95 ? "var(--failed)" : "var(--dawn)");
  return h("span", { class: "meter", role: "img", "aria-label": label }, fillOf);
}
