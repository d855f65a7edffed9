// The controls of a form, drawn as the daemon describes its fields. They write their text into `values`.

import { get } from "../lib/api.js";
import { fill, h } from "../lib/dom.js";
import { localZone } from "../lib/time.js";
import { field } from "./elements.js";

const channels = async () => ["last", ...(await get("/api/channels")).channels.map(({ name }) => name)];

/** Names that the daemon knows, for fields that refer to them. */
const SOURCES = {
  agent: async () => (await get("/api/agents")).agents.map(({ name }) => name),
  channel: channels,
  recipients: channels,
  slot: async () => (await get("/api/slots")).slots.map(({ name }) => name),
  label: async () => [...new Set((await get("/api/nodes")).nodes.flatMap(({ labels }) => labels ?? []))],
};

/** Whether a control offers names. */
const isOffered = (control) => Object.hasOwn(SOURCES, control);

/** The names for a control; none if the daemon does not have them. */
const namesFor = (control) => SOURCES[control]().catch(() => []);

/** The list that fields for time zones refer to. */
export const zones = () =>
  h(
    "datalist",
    { id: "zones" },
    Intl.supportedValuesOf("timeZone").map((zone) => h("option", { value: zone })),
  );

/** The text beside the boxes of a control with several names. */
const OTHERS = {
  recipients: { "aria-label": "Other recipients", placeholder: "with an address: phone → 12345" },
  label: { "aria-label": "Other labels", placeholder: "other labels" },
};

/** A function that draws one field, with its label and its hint. */
export function controls(values, changed) {
  const writes = (name, of = (target) => target.value) => (event) => {
    values[name] = of(event.target);
    changed();
  };

  /** A choice; each option says what it means. Without a default, the first option leaves it to the daemon. */
  const select = ({ name, options, means = {}, default: usual, placeholder }) => {
    const chosen = values[name] || usual || "";
    const words = (choice) =>
      choice === "" ? `default${placeholder && !isLong(placeholder) ? `: ${placeholder}` : ""}` : means[choice] ? `${choice}: ${means[choice]}` : choice;
    const shown = usual ? options : ["", ...options];
    return h(
      "select",
      { onchange: writes(name) },
      shown.map((choice) => h("option", { value: choice, selected: chosen === choice }, words(choice))),
    );
  };

  /** A choice among names; a name that the daemon does not know (yet) stays in the list. */
  const named = ({ name, control, default: usual, required, placeholder }) => {
    const box = h("select", { onchange: writes(name) });
    const show = (names) => {
      const chosen = values[name] || usual || "";
      const all = [...new Set([...(usual || required ? [] : [""]), ...names, ...(chosen ? [chosen] : [])])];
      const words = (choice) => (choice === "" ? placeholder || "none" : names.length && !names.includes(choice) ? `${choice} (unknown)` : choice);
      fill(
        box,
        all.map((choice) => h("option", { value: choice, selected: choice === chosen }, words(choice))),
      );
      if (required && !chosen && all.length) values[name] = box.value;
    };
    show([]);
    namesFor(control).then(show);
    return box;
  };

  /** Several of the names that the daemon knows: a checkbox for each, and a text field for others. */
  const several = ({ name, control }) => {
    let names = [];
    const given = () => (values[name] ?? "").split(",").map((part) => part.trim()).filter(Boolean);
    const others = h("input", { type: "text", spellcheck: "false", ...OTHERS[control] });
    const boxes = h("div");
    const write = (chosen) => {
      values[name] = [...chosen, ...others.value.split(",").map((part) => part.trim()).filter(Boolean)].join(", ");
      changed();
    };
    const chosenNow = () => [...boxes.querySelectorAll("input:checked")].map((box) => box.value);
    others.addEventListener("input", () => write(chosenNow()));
    const show = (known) => {
      names = known;
      others.value = given().filter((choice) => !names.includes(choice)).join(", ");
      fill(
        boxes,
        names.map((choice) =>
          h(
            "label",
            { class: "row check" },
            h("input", { type: "checkbox", value: choice, checked: given().includes(choice), onchange: () => write(chosenNow()) }),
            choice === "last" ? "last: where you were last active" : choice,
          ),
        ),
      );
    };
    show([]);
    namesFor(control).then(show);
    return h("div", { class: "ticks", role: "group" }, boxes, others);
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
  const drawn = (spec) => {
    if (spec.control === "choice") return select(spec);
    if (spec.control === "flag") return select({ ...spec, options: ["true", "false"], default: null });
    if (OTHERS[spec.control]) return several(spec);
    if (isOffered(spec.control)) return named(spec);
    return ["area", "json"].includes(spec.control) ? area(spec) : input(spec);
  };
  return (spec) => (spec.control === "session" ? session(spec) : field(spec.name, spec.label, drawn(spec), hintOf(spec)));
}

const isLong = (words) => words.length > 20;

/** The hint; a default in many words is there, because a list cuts it off on a phone. */
const hintOf = ({ hint, control, default: usual, placeholder }) =>
  ["choice", "flag"].includes(control) && !usual && placeholder && isLong(placeholder)
    ? `${hint}; default: ${placeholder}`
    : hint;
