// The command palette (Ctrl-K): open any view, find any schedule, run any action by keyboard.

import { get, post, schedulePath } from "../lib/api.js";
import { fill, h, quoted, settled } from "../lib/dom.js";
import { outcomeWords } from "../lib/text.js";
import { attempt } from "./dialogs.js";
import { icon } from "./icons.js";

const FOUND_MAX = 8;

/** Open the palette. `places`: [words, address, symbol]; `deeds`: [words, action, symbol]. */
export function openPalette(places, deeds) {
  if (document.querySelector("dialog.palette")) return;
  let entries = [];
  let chosen = 0;
  const list = h("ul", { role: "listbox", id: "palette-list", "aria-label": "Results" });
  const input = h("input", {
    type: "text",
    role: "combobox",
    "aria-expanded": true,
    "aria-controls": "palette-list",
    "aria-label": "Command palette",
    placeholder: "Go to a view, find a schedule, or run an action…",
    autocomplete: "off",
    spellcheck: "false",
  });
  const dialog = h(
    "dialog",
    {
      class: "palette",
      "aria-label": "Commands",
      onclose: () => dialog.remove(),
      onclick: (event) => {
        if (event.target === dialog) dialog.close();
      },
    },
    input,
    list,
  );

  const take = (entry) => {
    dialog.close();
    entry.act();
  };
  const point = () => {
    [...list.children].forEach((item, index) => item.setAttribute("aria-selected", String(index === chosen)));
    const item = list.children[chosen];
    input.setAttribute("aria-activedescendant", item?.id ?? "");
    item?.scrollIntoView({ block: "nearest" });
  };
  const show = (matches) => {
    entries = matches;
    chosen = 0;
    fill(
      list,
      matches.map((entry, index) =>
        h(
          "li",
          {
            role: "option",
            id: `palette-${index}`,
            onclick: () => take(entry),
            onpointermove: () => {
              chosen = index;
              point();
            },
          },
          icon(entry.symbol),
          quoted(entry.words, { class: "cut" }),
          h("small", null, entry.kind),
        ),
      ),
    );
    point();
  };

  const fixed = [
    ...places.map(([words, href, symbol]) => ({
      words,
      symbol,
      kind: "go to",
      act: () => {
        location.hash = href;
      },
    })),
    ...deeds.map(([words, act, symbol]) => ({ words, symbol, kind: "do", act })),
  ];
  const matches = (text, words) => text.split(/\s+/).every((part) => words.toLowerCase().includes(part));
  let asked = 0;
  const search = settled(async (text) => {
    const mine = asked;
    if (!text) return;
    try {
      const answer = await get("/api/schedule", { q: text, limit: FOUND_MAX });
      if (mine !== asked || !dialog.open) return;
      const schedules = answer.schedules.flatMap((schedule) => [
        {
          words: schedule.slug,
          symbol: "list",
          kind: schedule.health === "off" ? outcomeWords(schedule.status) : schedule.health,
          act: () => {
            location.hash = `#/schedules/${schedule.slug}`;
          },
        },
        {
          words: `Run ${schedule.slug} now`,
          symbol: "play",
          kind: "do",
          act: () => attempt(() => post(schedulePath(schedule.slug, "/run")), `${schedule.slug}: run requested`),
        },
      ]);
      show([...fixed.filter((entry) => matches(text, entry.words)), ...schedules]);
    } catch {
      // The fixed entries stay visible.
    }
  }, 120);
  input.addEventListener("input", () => {
    asked += 1; // a late response for an earlier query must not replace newer results
    const text = input.value.trim().toLowerCase();
    show(fixed.filter((entry) => matches(text, entry.words)));
    search(text);
  });
  input.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      chosen = (chosen + step + entries.length) % Math.max(1, entries.length);
      point();
    } else if (event.key === "Enter" && entries[chosen]) {
      event.preventDefault();
      take(entries[chosen]);
    }
  });
  document.body.append(dialog);
  show(fixed);
  dialog.showModal();
  input.focus();
}
