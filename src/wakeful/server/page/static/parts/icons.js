// Icons, as paths in a 24 by 24 box.

import { s } from "../lib/dom.js";

const PATHS = {
  timeline: "M3 6h9M7 12h11M4 18h7M16 18h4M15 6h2",
  list: "M8 6h12M8 12h12M8 18h12M3.5 6h.01M3.5 12h.01M3.5 18h.01",
  ledger: "M5 4h14v16H5zM9 9h6M9 13h6M9 17h3",
  heart: "M3 12h4l2.5-6 4 12 2.5-6H21",
  out: "M4 13v6h16v-6M12 15V4M7.5 8.5 12 4l4.5 4.5",
  inbox: "M4 13v6h16v-6M12 4v11M7.5 10.5 12 15l4.5-4.5",
  channel: "M4 5h16v11H10l-4 4v-4H4z",
  flow: "M4 4h6v6H4zM14 14h6v6h-6zM7 10v4a3 3 0 0 0 3 3h4",
  gauge: "M4 18a8 8 0 1 1 16 0M12 18l4-6",
  health: "M12 21s-8-5-8-11a4.5 4.5 0 0 1 8-3 4.5 4.5 0 0 1 8 3c0 6-8 11-8 11z",
  log: "M4 5h16v14H4zM7 9l3 3-3 3M12.5 15H17",
  search: "M10.5 4a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13zM15.5 15.5 20 20",
  plus: "M12 5v14M5 12h14",
  play: "M7 4.5 19 12 7 19.5z",
  pause: "M8 5v14M16 5v14",
  edit: "M4 20h4L19 9l-4-4L4 16z",
  trash: "M5 7h14M9 7V4h6v3M7 7l1 13h8l1-13",
  sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2v3M12 19v3M2 12h3M19 12h3M5 5l2 2M17 17l2 2M19 5l-2 2M7 17l-2 2",
  moon: "M20 14.5A8 8 0 0 1 9.5 4 8 8 0 1 0 20 14.5z",
  menu: "M4 7h16M4 12h16M4 17h16",
  sunrise: "M3 18h18M6 18a6 6 0 0 1 12 0M12 4v4M4.5 10.5l2 2M19.5 10.5l-2 2",
  again: "M4 12a8 8 0 0 1 14-5l2 2M20 4v5h-5M20 12a8 8 0 0 1-14 5l-2-2M4 20v-5h5",
  check: "M5 12.5 10 17.5 19.5 7",
  agent: "M5 8h14v11H5zM12 8V4M9.5 4h5M9 13h.01M15 13h.01M9.5 16.5h5",
  copy: "M9 9h10v11H9zM5 15V4h10",
  close: "M6 6l12 12M18 6 6 18",
  question: "M9 9a3 3 0 1 1 4.5 2.6c-1 .6-1.5 1.2-1.5 2.4M12 18h.01",
  minus: "M5 12h14",
  check: "M5 12.5 10 17.5 19.5 7",
  coin: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM12 7v10M14.6 9.2c-.6-.8-1.5-1.2-2.6-1.2-1.5 0-2.6.8-2.6 2s1.1 1.7 2.6 2 2.6.8 2.6 2-1.1 2-2.6 2c-1.1 0-2-.4-2.6-1.2",
  ahead: "M4 19V5M4 19h16M7 15l4-5 3 3 6-7M16 6h4v4",
  import: "M4 14v5h16v-5M12 3v11M8 10l4 4 4-4M4 5h4M16 5h4",
};

/** A decorative icon. */
export function icon(name) {
  const shape = s("path", { d: PATHS[name] });
  for (const [key, value] of Object.entries({
    fill: "none",
    stroke: "currentColor",
    "stroke-width": "1.8",
    "stroke-linecap": "round",
    "stroke-linejoin": "round",
  }))
    shape.setAttribute(key, value);
  return s("svg", { viewBox: "0 0 24 24", "aria-hidden": true }, shape);
}
