// Builds elements from values. Text only becomes text nodes; no function accepts markup.

import { visible } from "./text.js";

const SVG = "http://www.w3.org/2000/svg";
const FOCUSABLE = "a, button, summary, input, select, textarea, [tabindex]";
const PLAIN_ATTRIBUTES = new Set([
  "class",
  "role",
  "type",
  "id",
  "for",
  "name",
  "scope",
  "colspan",
  "width",
  "height",
  "placeholder",
  "autocomplete",
  "spellcheck",
  "rows",
  "min",
  "max",
  "step",
  "inputmode",
  "list",
  "dir",
  "tabindex",
  "datetime",
  "d",
  "viewBox",
  "x",
  "y",
  "x1",
  "x2",
  "y1",
  "y2",
  "cx",
  "cy",
  "r",
  "rx",
  "points",
  "enterkeyhint",
  "autocapitalize",
  "maxlength",
  "pattern",
  "text-anchor",
  "transform",
  "fill-rule",
  "open",
  "translate",
  "method",
]);

/** An element. `props`: attributes, `on*` handlers, `data`, `style` (by CSS name), and properties such as `value`. */
export function h(tag, props, ...children) {
  return build(document.createElement(tag), props, children);
}

/** An SVG element. */
export function s(tag, props, ...children) {
  return build(document.createElementNS(SVG, tag), props, children);
}

function build(element, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) set(element, name, value);
  append(element, children);
  return element;
}

function set(element, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
  else if (name === "data") Object.assign(element.dataset, value);
  else if (name === "style") for (const [key, text] of Object.entries(value)) element.style.setProperty(key, text);
  else if (name === "href") element.setAttribute("href", safeAddress(value));
  else if (name === "title" || name.startsWith("aria-"))
    element.setAttribute(name, value === true ? "true" : visible(value));
  else if (PLAIN_ATTRIBUTES.has(name)) element.setAttribute(name, value === true ? "" : value);
  else element[name] = value;
}

/** Only links within this page: untrusted text never becomes a URL. */
function safeAddress(address) {
  return /^(#|\/(?!\/))/.test(address) ? address : "#/";
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(visible(child)));
  }
}

/** Replace the children of an element. If one of them had the focus, its successor gets it. */
export function fill(element, ...children) {
  const restoreFocus = focusKeeper(element);
  element.replaceChildren();
  append(element, children);
  restoreFocus();
  return element;
}

/** Note which child has the focus. The result gives the focus back: to that child, or to its successor if it was redrawn. */
export function focusKeeper(element) {
  const focused = element.contains(document.activeElement) && element !== document.activeElement ? document.activeElement : null;
  const [name, place] = focused ? identity(element, focused) : [];
  return () => {
    if (focused && focused !== document.activeElement) alike(element, name)[place]?.focus({ preventScroll: true });
  };
}

const nameOf = (element) => [element.tagName, element.getAttribute("aria-label"), element.getAttribute("href"), element.id, element.textContent].join();
const alike = (element, name) => [...element.querySelectorAll(FOCUSABLE)].filter((child) => nameOf(child) === name);

/** What a child is called, and which of those of that name it is. */
function identity(element, child) {
  const name = nameOf(child);
  return [name, alike(element, name).indexOf(child)];
}

/** Fill a list, keeping the elements of items that did not change: the focus stays, and nothing flickers. */
export function keyed(list, items, build, keyOf = (item) => JSON.stringify(item)) {
  const known = new Map([...list.children].map((child) => [child.dataset.key, child]));
  const wanted = items.map((item) => {
    const key = String(keyOf(item));
    const element = known.get(key) ?? build(item);
    known.delete(key);
    element.dataset.key = key;
    return element;
  });
  for (const child of known.values()) child.remove();
  wanted.forEach((element, place) => {
    if (list.children[place] !== element) list.insertBefore(element, list.children[place] ?? null);
  });
}

/** Set the text of an element if it differs. */
export function say(element, text) {
  const shown = visible(text);
  if (element.textContent !== shown) element.textContent = shown;
}

/** Untrusted text: isolated, so that its writing direction does not affect the surroundings. */
export const quoted = (text, props = {}) => h("bdi", props, text);

/** Call at most once per frame, however often it is requested. */
export function perFrame(action) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      action();
    });
  };
}

/** Throttle: call soon, then at most once per `gap` milliseconds while requested. */
export function throttled(action, gap, signal) {
  let timer = null;
  let last = -Infinity;
  signal?.addEventListener("abort", () => clearTimeout(timer));
  return () => {
    if (timer !== null || signal?.aborted) return;
    timer = setTimeout(
      () => {
        timer = null;
        last = performance.now();
        if (!signal?.aborted) action();
      },
      Math.max(0, last + gap - performance.now()),
    );
  };
}

/** Debounce: call after `quiet` milliseconds without a request. */
export function settled(action, quiet) {
  let timer = null;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...given), quiet);
  };
}
