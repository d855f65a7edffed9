// The command palette (Ctrl-K): open any view, find anything by its name, run any action by keyboard; and create a schedule
// from a sentence, which is offered last and has a key of its own.

import { fill, h, quoted, settled } from "../lib/dom.js";
import { finder } from "../lib/finding.js";
import { attempt } from "./dialogs.js";
import { button } from "./elements.js";
import { icon } from "./icons.js";
import { create, question, understand, understanding } from "./sentence.js";

/** Open the palette. `places`: [words, address, symbol]; `deeds`: [words, action, symbol]. */
export function openPalette(places, deeds) {
  if (document.querySelector("dialog.palette[open]")) return;
  let entries = [];
  let chosen = 0;
  let offered = null; // the definition that Ctrl-Enter creates
  const offer = h("section", { class: "offer hidden", "aria-label": "Create a schedule", "aria-live": "polite" });
  const list = h("ul", { role: "listbox", id: "palette-list", "aria-label": "Results" });
  const input = h("input", {
    type: "text",
    role: "combobox",
    "aria-expanded": true,
    "aria-controls": "palette-list",
    "aria-label": "Command palette",
    placeholder: "Find or run anything, or say what should happen and when…",
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
    offer,
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
  const matches = (text, words) => text.toLowerCase().split(/\s+/).every((part) => words.toLowerCase().includes(part));
  const write = (text) => {
    input.value = text;
    input.dispatchEvent(new Event("input"));
    input.focus();
  };
  const createIt = () => {
    const definition = offered;
    dialog.close();
    create(definition);
  };
  const showOffer = (answer) => {
    offered = answer?.definition ?? null;
    const isShown = Boolean(answer?.when);
    offer.classList.toggle("hidden", !isShown);
    if (!isShown) fill(offer);
    else if (!offered) fill(offer, question(answer, write));
    else fill(offer, understanding(answer), button(["Create ", h("kbd", null, "Ctrl Enter")], createIt, { kind: "primary small" }));
  };
  const find = finder(attempt);
  let asked = 0;
  const search = settled(async (text) => {
    const mine = asked;
    if (!text) return;
    const isOver = () => mine !== asked || !dialog.open;
    const [found, answer] = await Promise.allSettled([find(text), understand(text)]);
    if (isOver()) return;
    if (found.value) show([...fixed.filter((entry) => matches(text, entry.words)), ...found.value]); // else the fixed ones stay
    showOffer(answer.value);
  }, 120);
  input.addEventListener("input", () => {
    asked += 1; // a late response for an earlier query must not replace newer results
    const text = input.value.trim();
    show(fixed.filter((entry) => matches(text, entry.words)));
    showOffer(null);
    search(text);
  });
  input.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      chosen = (chosen + step + entries.length) % Math.max(1, entries.length);
      point();
    } else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      if (offered) createIt();
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
