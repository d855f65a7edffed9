// A bar chart: one tab stop, arrow keys move between the bars, and a line below says what the current bar shows.

import { h, say } from "../lib/dom.js";

/** Bars of equal width. `points`: {label, value, words} and, for an estimate, {low, high}. */
export function bars(label, points) {
  const most = Math.max(...points.map(({ value, high }) => Math.max(value ?? 0, high ?? 0)), Number.MIN_VALUE);
  const caption = h("p", { class: "soft small", "aria-hidden": true }, "Point at a bar, or use the arrow keys.");
  const share = (value) => `${(100 * value) / most}%`;
  const all = points.map((point, index) =>
    h(
      "button",
      {
        type: "button",
        tabindex: index ? -1 : 0,
        "aria-label": point.words,
        onfocus: () => say(caption, point.words),
        onpointerenter: () => say(caption, point.words),
      },
      h(
        "div",
        { class: "plot" },
        h("i", { class: point.value ? null : "none", style: { height: share(point.value ?? 0) } }),
        point.high > (point.low ?? 0)
          ? h("i", { class: "range", style: { bottom: share(point.low), height: share(point.high - point.low) } })
          : null,
      ),
      h("span", { "aria-hidden": true }, point.label),
    ),
  );
  const move = (event) => {
    const from = all.indexOf(event.target.closest("button"));
    const to = { ArrowRight: from + 1, ArrowLeft: from - 1, Home: 0, End: all.length - 1 }[event.key];
    if (to === undefined || !all[to]) return;
    event.preventDefault();
    all[from].tabIndex = -1;
    all[to].tabIndex = 0;
    all[to].focus();
  };
  return h("div", { class: "stack tight" }, h("div", { class: "bars", role: "group", "aria-label": label, onkeydown: move }, all), caption);
}
