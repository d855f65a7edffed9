// The keyboard shortcuts, shown by `?`.

import { open } from "./dialogs.js";
import { h } from "../lib/dom.js";
import { button } from "./elements.js";

const KEYS = [
  ["Ctrl K", "find or run anything"],
  ["d", "Today"],
  ["t", "timeline"],
  ["s", "schedules"],
  ["l", "ledger"],
  ["n", "new schedule"],
  ["/", "search in this view"],
  ["+ − ← → 0", "on the timeline: zoom, move, back to now"],
  ["↑ ↓ , .", "on the timeline: choose a row, choose a mark (Enter opens it)"],
  ["?", "this list"],
  ["Esc", "close a dialog, the menu or the wall view"],
];

/** Show the list. */
export function showKeys() {
  if (document.querySelector("dialog.keys")) return;
  const dialog = h(
    "dialog",
    { class: "keys", "aria-labelledby": "keys-title" },
    h(
      "div",
      { class: "body" },
      h("h2", { id: "keys-title" }, "Keys"),
      h(
        "dl",
        { class: "facts" },
        KEYS.map(([keys, words]) => [
          h("dt", null, keys.split(" ").map((key) => [h("kbd", null, key), " "])),
          h("dd", null, words),
        ]),
      ),
    ),
    h("div", { class: "foot" }, button("Close", () => dialog.close(), { autofocus: true })),
  );
  open(dialog);
}
