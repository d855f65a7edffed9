// Create and edit a quota slot: the fields of its provider.

import { ask, get, remove } from "../lib/api.js";
import { fill, h, quoted } from "../lib/dom.js";
import { textOf, valueOf } from "../lib/definition.js";
import { confirm, tell } from "../parts/dialogs.js";
import { controls, zones } from "../parts/controls.js";
import { body, button, choices, field, link, panel } from "../parts/elements.js";
import { faultsOf, showFaults } from "../parts/field-errors.js";

const RARE = ["retryWindow", "errorsMax", "backoffCap", "percentageKey", "resetKey", "env"];

export default async function slotEdit(visit) {
  const known = visit.params[0] ?? null;
  const path = (name) => `/api/slots/${encodeURIComponent(name)}`;
  const { providers } = await get("/api/forms/slot", {}, visit.signal);
  const stored = known ? await get(path(known), {}, visit.signal) : {};
  let provider = providers.find(({ name }) => name === stored.provider) ?? providers[0];
  const values = {};
  for (const spec of provider.fields) {
    const value = stored[spec.name];
    const isUsual = JSON.stringify(value) === JSON.stringify(spec.default);
    values[spec.name] = value == null || isUsual ? "" : textOf(spec, value);
  }
  const draw = controls(values, () => {});
  const fields = h("div", { class: "pairs" });
  const name = h("input", { type: "text", value: known ?? "", disabled: known !== null, placeholder: "main", spellcheck: "false", autocapitalize: "none", maxlength: 32 });
  const general = h("ul", { class: "hidden", role: "alert" });
  const more = h("details", null, h("summary", null, "More options"));
  const rest = h("div", { class: "pairs" });
  more.append(rest);
  const show = () => {
    const ordered = [...provider.fields].sort((spec, other) => Number(other.required) - Number(spec.required));
    fill(fields, ordered.filter((spec) => !RARE.includes(spec.name)).map(draw));
    fill(rest, ordered.filter((spec) => RARE.includes(spec.name)).map(draw));
  };
  const written = () => {
    const out = { provider: provider.name };
    for (const spec of provider.fields) {
      const text = String(values[spec.name] ?? "").trim();
      if (text) out[spec.name] = valueOf(spec, text);
    }
    return out;
  };
  const save = async (event) => {
    event.preventDefault();
    const slug = name.value.trim();
    try {
      if (!slug) throw Object.assign(new Error("enter a name, such as main"), { field: "name" });
      await ask("PUT", path(slug), { body: written() });
      tell(`${slug} was saved`);
      location.hash = "#/slots";
    } catch (error) {
      showFaults(form, general, faultsOf(error));
      form.querySelector("[aria-invalid=true]")?.focus();
    }
  };
  const drop = async () => {
    if (!(await confirm(`Remove ${known}?`, "It is no longer polled or woken. Its runs stay in the ledger.", "Remove", "Keep the slot"))) return;
    try {
      await remove(path(known));
      location.hash = "#/slots";
    } catch (error) {
      tell(error.message, { isBad: true });
    }
  };
  const ways = choices(
    "Provider",
    providers.map((candidate) => [candidate.name, candidate.name]),
    provider.name,
    (chosen) => {
      provider = providers.find((candidate) => candidate.name === chosen);
      fill(says, provider.label);
      show();
    },
  );
  const says = h("p", { class: "soft small" }, provider.label);
  const form = h(
    "form",
    { class: "form", noValidate: true, autocomplete: "off", onsubmit: save },
    general,
    field("name", "Name", name, known ? null : "1 to 32 letters, digits and . _ -"),
    h("fieldset", null, h("legend", null, "Provider"), ways, says),
    fields,
    more,
    zones(),
    h(
      "div",
      { class: "row" },
      button(known ? "Save" : "Create", null, { kind: "primary", type: "submit" }),
      link("Cancel", "#/slots", { kind: "quiet" }),
      known ? button("Remove", drop, { kind: "danger", symbol: "trash" }) : null,
    ),
  );
  show();
  const isFixed = stored.source === "settings";
  return {
    title: known ? `Edit ${known}` : "New slot",
    element: h(
      "div",
      { class: "stack" },
      h("div", { class: "head" }, h("div", { class: "words" }, h("h1", null, known ? ["Edit ", quoted(known)] : "New quota slot"))),
      isFixed
        ? h("div", { class: "note" }, `This slot is defined in wakeful.toml, under [slots.${known}]; change it there. The page can change slots that were created here.`)
        : panel(null, body(form)),
    ),
  };
}
