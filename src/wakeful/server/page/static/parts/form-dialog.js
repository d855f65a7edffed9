// A form in a dialog. Errors are shown at their fields, and it stays open until it is saved or cancelled.

import { h } from "../lib/dom.js";
import { open } from "./dialogs.js";
import { button } from "./elements.js";
import { faultsOf, showFaults } from "./field-errors.js";

/** Open the dialog; `save` sends the values and throws if they are invalid. Returns whether it was saved. */
export function askForm(title, fields, save, { yes = "Save", words = null } = {}) {
  return new Promise((answer) => {
    let isSaved = false;
    const general = h("ul", { class: "hidden", role: "alert" });
    const done = button(yes, null, { kind: "primary", type: "submit" });
    const submit = async (event) => {
      event.preventDefault();
      done.disabled = true;
      try {
        await save();
        isSaved = true;
        dialog.close();
      } catch (error) {
        showFaults(form, general, faultsOf(error));
        form.querySelector("[aria-invalid=true]")?.focus();
      }
      done.disabled = false;
    };
    const form = h(
      "form",
      { class: "form", noValidate: true, autocomplete: "off", onsubmit: submit },
      h("div", { class: "body" }, h("h2", { id: "form-title" }, title), words ? h("p", { class: "soft" }, words) : null, general, fields),
      h("div", { class: "foot" }, button("Cancel", () => dialog.close()), done),
    );
    const dialog = h(
      "dialog",
      {
        "aria-labelledby": "form-title",
        onclose: () => answer(isSaved),
      },
      form,
    );
    open(dialog);
    form.querySelector("input, select, textarea")?.focus();
  });
}
