// The form fields of a definition: when, what, and options. They write their texts into `values` and report changes.

import { fill, h } from "../lib/dom.js";
import { ACTIONS, OPTIONS, TIMINGS } from "../lib/definition.js";
import { localZone } from "../lib/time.js";
import { choices, field } from "./elements.js";

const METHODS = ["POST", "GET", "PUT", "PATCH", "DELETE"];

/** The element with all fields, and `show`, which fills them from the values. */
export function definitionFields(values, changed) {
  const input = (name, props = {}) =>
    h("input", {
      type: "text",
      value: values[name] ?? "",
      spellcheck: "false",
      ...props,
      oninput: (event) => {
        values[name] = event.target.value;
        changed();
      },
    });
  const area = (name, props = {}) =>
    h("textarea", {
      value: values[name] ?? "",
      ...props,
      oninput: (event) => {
        values[name] = event.target.value;
        changed();
      },
    });
  const pick = (name, options) =>
    h(
      "select",
      {
        onchange: (event) => {
          values[name] = event.target.value;
          changed();
        },
      },
      options.map((one) => h("option", { value: one, selected: (values[name] || "") === one }, one || "default")),
    );
  const timingFields = h("div", { class: "pairs" });
  const showTiming = () =>
    fill(
      timingFields,
      TIMINGS[values.timing][1].map(([name, label, hint, example]) =>
        hint === "zone"
          ? field(`schedule.${name}`, label, input(`schedule.${name}`, { list: "zones", placeholder: localZone }))
          : field(`schedule.${name}`, label, input(`schedule.${name}`, { placeholder: example }), hint),
      ),
    );
  const actionFields = h("div", { class: "stack" });
  const showAction = () =>
    fill(
      actionFields,
      {
        prompt: () => [
          field("prompt", "Prompt", area("prompt", { placeholder: "Summarise yesterday's commits" })),
          h(
            "div",
            { class: "pairs" },
            field("agent", "Agent", input("agent", { placeholder: "default" })),
            h(
              "label",
              { class: "row check" },
              h("input", {
                type: "checkbox",
                checked: values.persist,
                onchange: (event) => {
                  values.persist = event.target.checked;
                  changed();
                },
              }),
              "Keep one session from run to run",
            ),
          ),
        ],
        command: () => [
          field(
            "command.argv",
            "Command",
            input("command.argv", { class: "mono", placeholder: "make report" }),
            "Quoted as in a shell, but no shell is used; for pipes write sh -c '…'",
          ),
          field("command.cwd", "Folder", input("command.cwd", { placeholder: "optional" })),
        ],
        http: () => [
          h(
            "div",
            { class: "pairs" },
            field("http.url", "URL", input("http.url", { placeholder: "http://127.0.0.1:9000/in" })),
            field("http.method", "Method", pick("http.method", METHODS)),
          ),
          field("http.body", "Body", area("http.body", { class: "mono", placeholder: "optional JSON" })),
        ],
        call: () => [
          field(
            "call.target",
            "Function",
            input("call.target", { class: "mono", placeholder: "package.module:function" }),
          ),
          field("call.args", "Arguments", area("call.args", { class: "mono", placeholder: "optional JSON object" })),
        ],
        event: () => [
          field("event.text", "Text", area("event.text", { placeholder: "Text for the next heartbeat" })),
        ],
      }[values.action](),
    );
  const optionFields = h("div", { class: "pairs" });
  const showOptions = () =>
    fill(
      optionFields,
      OPTIONS.map(([name, label, hint]) =>
        Array.isArray(hint)
          ? field(name, label, pick(name, hint))
          : field(
              name,
              label,
              input(
                name,
                hint === "number" ? { inputmode: "numeric" } : { placeholder: hint.replace("optional: ", "") },
              ),
            ),
      ),
    );

  const zones = h(
    "datalist",
    { id: "zones" },
    Intl.supportedValuesOf("timeZone").map((zone) => h("option", { value: zone })),
  );

  const timings = choices(
    "Kind of timing",
    Object.entries(TIMINGS).map(([kind, [label]]) => [kind, label]),
    values.timing,
    (kind) => {
      values.timing = kind;
      showTiming();
      changed();
    },
  );
  const actions = choices("Kind of action", Object.entries(ACTIONS), values.action, (kind) => {
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
