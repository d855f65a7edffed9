// Toasts and dialogs.

import { focusKeeper, h, quoted } from "../lib/dom.js";
import { button } from "./elements.js";

const TOASTS_MAX = 4;
const shelf = h("div", { class: "toasts", role: "status", "aria-live": "polite" });

/** Show a toast. */
export function tell(words, { isBad = false } = {}) {
  if (!shelf.isConnected) document.body.append(shelf);
  while (shelf.children.length >= TOASTS_MAX) shelf.firstChild.remove();
  const close = button("", () => toast.remove(), { kind: "quiet small close", symbol: "close", label: "Close this message" });
  const toast = h("div", { class: isBad ? "toast bad" : "toast", role: isBad ? "alert" : null }, quoted(words, { class: "grow" }), close);
  shelf.append(toast);
  setTimeout(() => toast.remove(), isBad ? 9_000 : 4_000);
}

/** Run an action; on an error show the message. Returns whether it succeeded. */
export async function attempt(action, done = null) {
  try {
    const answer = await action();
    if (done) tell(typeof done === "function" ? done(answer) : done);
    return true;
  } catch (error) {
    if (error.name !== "AbortError") tell(error.message, { isBad: true });
    return false;
  }
}

/** Show a dialog, and remove it when it is closed. The focus returns to what opened it, also if that was redrawn. */
export function open(dialog) {
  const restoreFocus = focusKeeper(document.body);
  dialog.addEventListener("close", () => {
    dialog.remove();
    restoreFocus();
  });
  document.body.append(dialog);
  dialog.showModal();
}

/** Ask for confirmation before something that cannot be undone. Both buttons say what they do. */
export function confirm(title, words, yes, no, { kind = "danger" } = {}) {
  return new Promise((answer) => {
    const dialog = h(
      "dialog",
      {
        "aria-labelledby": "ask-title",
        onclose: () => answer(dialog.returnValue === "yes"),
      },
      h("div", { class: "body" }, h("h2", { id: "ask-title" }, quoted(title)), h("div", { class: "soft" }, words)),
      h(
        "div",
        { class: "foot" },
        button(no, () => dialog.close("no")),
        button(yes, () => dialog.close("yes"), { kind }),
      ),
    );
    open(dialog);
  });
}

/** Show content in a dialog until it is closed. */
export function show(title, ...children) {
  const dialog = h(
    "dialog",
    { "aria-labelledby": "show-title" },
    h("div", { class: "body" }, h("h2", { id: "show-title" }, quoted(title)), children),
    h("div", { class: "foot" }, button("Close", () => dialog.close())),
  );
  open(dialog);
}

/** Ask for one line of text. Returns null if the dialog is cancelled. */
export function askText(title, words, label, { type = "text", yes = "Continue" } = {}) {
  return new Promise((answer) => {
    const input = h("input", { type, id: "ask-text", autocomplete: "off" });
    const form = h(
      "form",
      {
        method: "dialog",
        onsubmit: () => {
          dialog.returnValue = "yes";
        },
      },
      h(
        "div",
        { class: "body" },
        h("h2", { id: "ask-title" }, title),
        h("p", { class: "soft" }, words),
        h("div", { class: "field" }, h("label", { for: "ask-text" }, label), input),
      ),
      h(
        "div",
        { class: "foot" },
        button("Cancel", () => dialog.close("no")),
        button(yes, null, { kind: "primary", type: "submit", value: "yes" }),
      ),
    );
    const dialog = h(
      "dialog",
      {
        "aria-labelledby": "ask-title",
        onclose: () => answer(dialog.returnValue === "yes" ? input.value : null),
      },
      form,
    );
    open(dialog);
    input.focus();
  });
}
