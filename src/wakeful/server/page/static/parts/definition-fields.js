// The form of a definition, drawn as the daemon describes it: when, what, and options. Its controls write their texts into
// `values` and report changes.

import { fill, h } from "../lib/dom.js";
import { localZone } from "../lib/time.js";
import { choices, field } from "./elements.js";

/** The element with all fields, and `show`, which fills them from the values. */
export function definitionFields(form, values, changed) {
  const writes = (name, of = (target) => target.value) => (event) => {
    values[name] = of(event.target);
    changed();
  };
  const select = (name, options, usual) => {
    const chosen = values[name] || usual || "";
    const shown = usual ? options : ["", ...options];
    return h(
      "select",
      { onchange: writes(name) },
      shown.map((one) => h("option", { value: one, selected: chosen === one }, one || "default")),
    );
  };
  const area = ({ name, placeholder, control }) =>
    h("textarea", {
      value: values[name] ?? "",
      class: control === "json" ? "mono" : null,
      placeholder: control === "json" ? "optional JSON" : placeholder,
      oninput: writes(name),
    });
  const input = ({ name, placeholder, control }) =>
    h("input", {
      type: "text",
      value: values[name] ?? "",
      spellcheck: "false",
      placeholder: control === "zone" ? localZone : placeholder,
      ...(control === "zone" ? { list: "zones" } : control === "number" ? { inputmode: "numeric" } : {}),
      oninput: writes(name),
    });
  const session = ({ name }) =>
    h(
      "label",
      { class: "row check" },
      h("input", {
        type: "checkbox",
        checked: values[name]?.persistSession ?? true,
        onchange: writes(name, ({ checked }) => ({ ...values[name], persistSession: checked })),
      }),
      "Keep one session from run to run",
    );
  const draw = (one) => {
    if (one.control === "session") return session(one);
    const control =
      one.control === "choice"
        ? select(one.name, one.options, one.default)
        : one.control === "flag"
          ? select(one.name, ["true", "false"])
          : ["area", "json"].includes(one.control)
            ? area(one)
            : input(one);
    const hint = one.control === "recipients" ? `${one.hint}; separate several with commas: phone, mail` : one.hint;
    return field(one.name, one.label, control, hint);
  };

  const [timingFields, actionFields, optionFields] = ["pairs", "stack", "pairs"].map((kind) => h("div", { class: kind }));
  const partOf = (parts, name) => parts.find((one) => one.name === name).fields;
  const showTiming = () => fill(timingFields, partOf(form.timings, values.timing).map(draw));
  const showAction = () => {
    const [needed, more] = [[], []];
    for (const one of partOf(form.actions, values.action))
      (one.required || one.control === "area" ? needed : more).push(draw(one));
    fill(actionFields, ...needed, more.length ? h("div", { class: "pairs" }, more) : null);
  };
  const showOptions = () => fill(optionFields, form.options.map(draw));

  const zones = h(
    "datalist",
    { id: "zones" },
    Intl.supportedValuesOf("timeZone").map((zone) => h("option", { value: zone })),
  );
  const named = (parts) => parts.map(({ name, label }) => [name, label]);
  const timings = choices("Kind of timing", named(form.timings), values.timing, (kind) => {
    values.timing = kind;
    showTiming();
    changed();
  });
  const actions = choices("Kind of action", named(form.actions), values.action, (kind) => {
    values.action = kind;
    showAction();
    changed();
  });
  const element = h(
    "div",
    { class: "form" },
    h("fieldset", null, h("legend", null, "When"), timings, timingFields),
    h("fieldset", null, h("legend", null, "What"), actions, actionFields),
    h("details", null, h("summary", null, "More options"), optionFields),
    zones,
  );
  const show = () => {
    timings.choose(values.timing);
    actions.choose(values.action);
    showTiming();
    showAction();
    showOptions();
  };
  show();
  return { element, show };
}
