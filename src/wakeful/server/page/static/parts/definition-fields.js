// The form of a definition, drawn as the daemon describes it: when, what, and options. Its controls write their text into
// `values` and report changes.

import { fill, h } from "../lib/dom.js";
import { controls, zones } from "./controls.js";
import { choices } from "./elements.js";

/** Fields of a timing that few people need. */
const RARE = ["schedule.inGap", "schedule.inRepeat"];

/** The element with all fields, and `show`, which fills them from the values. */
export function definitionFields(form, values, changed) {
  const draw = controls(values, changed);
  const [timingFields, actionFields, optionFields] = ["pairs", "stack", "stack"].map((kind) => h("div", { class: kind }));
  const rareFields = h("div");
  const partOf = (parts, name) => parts.find((part) => part.name === name).fields;
  const showTiming = () => {
    const specs = partOf(form.timings, values.timing);
    const rare = specs.filter(({ name }) => RARE.includes(name));
    fill(timingFields, specs.filter((spec) => !rare.includes(spec)).map(draw));
    fill(
      rareFields,
      rare.length
        ? h(
            "details",
            { open: rare.some(({ name }) => values[name]) },
            h("summary", null, "Daylight saving"),
            h("div", { class: "pairs" }, rare.map(draw)),
          )
        : null,
    );
  };
  const showAction = () => {
    const [needed, more] = [[], []];
    for (const spec of partOf(form.actions, values.action))
      (spec.required || spec.control === "area" ? needed : more).push(draw(spec));
    fill(actionFields, ...needed, more.length ? h("div", { class: "pairs" }, more) : null);
  };
  /** The options; those of one object stand together below its name. */
  const showOptions = () => {
    const groups = Object.groupBy(form.options, ({ name, group }) => (group ? name.split(".")[0] : ""));
    const { "": single = [], ...grouped } = groups;
    fill(
      optionFields,
      h("div", { class: "pairs" }, single.map(draw)),
      Object.values(grouped).map((some) =>
        h("fieldset", { class: "group" }, h("legend", null, some[0].group), h("div", { class: "pairs" }, some.map(draw))),
      ),
    );
  };

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
    h("fieldset", null, h("legend", null, "When"), timings, timingFields, rareFields),
    h("fieldset", null, h("legend", null, "What"), actions, actionFields),
    h("details", null, h("summary", null, "More options"), optionFields),
    zones(),
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
