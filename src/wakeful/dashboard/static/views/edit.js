// New and edit: a form that says, while one types, when it would run and what is wrong where; or the same as JSON.

import { Problem, ask, schedulePath } from "../lib/api.js";
import { fill, h, quoted, settled } from "../lib/dom.js";
import { ACTIONS, OPTIONS, TIMINGS, fromForm, toForm } from "../lib/definition.js";
import { at, localZone, wall, when } from "../lib/time.js";
import { tell } from "../parts/asking.js";
import { body, button, choices, field, link, panel } from "../parts/small.js";

const READ_BACK = [
  "status",
  "statusReason",
  "lastRun",
  "lastResult",
  "lastError",
  "sessionId",
  "nextRun",
  "consecutiveErrors",
  "createdAt",
  "updatedAt",
  "version",
  "description",
  "next",
  "recent",
];
const METHODS = ["POST", "GET", "PUT", "PATCH", "DELETE"];

export default async function edit(visit) {
  const known = visit.params[0] ?? null;
  let etag = null;
  let stored = null;
  if (known) {
    const answer = await ask("GET", schedulePath(known), { signal: visit.signal });
    etag = answer.headers.get("etag");
    stored = Object.fromEntries(
      Object.entries(answer.body).filter(([name]) => !READ_BACK.includes(name) && name !== "slug"),
    );
  }
  const values = toForm(stored);
  if (!known) values["schedule.timezone"] = localZone;
  let isJson = false;
  let asked = 0;

  const form = h("form", {
    class: "form",
    novalidate: true,
    autocomplete: "off",
    onsubmit: (event) => {
      event.preventDefault();
      save();
    },
  });
  const slug = h("input", {
    type: "text",
    value: known ?? "",
    disabled: known !== null,
    placeholder: "daily-standup",
    spellcheck: "false",
    autocapitalize: "none",
    maxlength: 64,
    oninput: () => preview(),
  });
  const general = h("ul", { class: "hidden", role: "alert" });
  const words = h("p", { class: "words" }, "…");
  const times = h("ol", { class: "times" });
  const warning = h("div", { class: "note hidden" });
  const jsonBox = h("textarea", {
    class: "json",
    spellcheck: "false",
    "aria-label": "Definition as JSON",
    oninput: () => preview(),
  });
  const save0 = button(known ? "Save" : "Create", null, { kind: "primary", type: "submit" });

  const input = (name, props = {}) =>
    h("input", {
      type: "text",
      value: values[name] ?? "",
      spellcheck: "false",
      ...props,
      oninput: (event) => {
        values[name] = event.target.value;
        preview();
      },
    });
  const area = (name, props = {}) =>
    h("textarea", {
      value: values[name] ?? "",
      ...props,
      oninput: (event) => {
        values[name] = event.target.value;
        preview();
      },
    });
  const pick = (name, options) =>
    h(
      "select",
      {
        onchange: (event) => {
          values[name] = event.target.value;
          preview();
        },
      },
      options.map((one) => h("option", { value: one, selected: (values[name] || "") === one }, one || "as usual")),
    );
  const zones = h(
    "datalist",
    { id: "zones" },
    Intl.supportedValuesOf("timeZone").map((zone) => h("option", { value: zone })),
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
                  preview();
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
            "Words as in a shell; no shell is started, so there are no pipes unless you write sh -c '…'",
          ),
          field("command.cwd", "Folder", input("command.cwd", { placeholder: "optional" })),
        ],
        http: () => [
          h(
            "div",
            { class: "pairs" },
            field("http.url", "Address", input("http.url", { placeholder: "http://127.0.0.1:9000/in" })),
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
          field("event.text", "Text", area("event.text", { placeholder: "The next heartbeat reads this" })),
        ],
      }[values.action](),
    );
  const options = h(
    "details",
    null,
    h("summary", null, "More options"),
    h(
      "div",
      { class: "pairs" },
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
    ),
  );
  const byHand = h(
    "div",
    { class: "form" },
    h(
      "fieldset",
      null,
      h("legend", null, "When"),
      choices(
        "Kind of timing",
        Object.entries(TIMINGS).map(([kind, [label]]) => [kind, label]),
        values.timing,
        (kind) => {
          values.timing = kind;
          showTiming();
          preview();
        },
      ),
      timingFields,
    ),
    h(
      "fieldset",
      null,
      h("legend", null, "What"),
      choices("Kind of action", Object.entries(ACTIONS), values.action, (kind) => {
        values.action = kind;
        showAction();
        preview();
      }),
      actionFields,
    ),
    options,
  );
  const asJson = h("div", { class: "field hidden" }, jsonBox, h("span", { class: "wrong", role: "alert" }));

  // --- both ways of writing it --------------------------------------------------------------------------------------------

  const definition = () => {
    if (!isJson) return fromForm(values);
    try {
      return JSON.parse(jsonBox.value);
    } catch (error) {
      throw Object.assign(new Error(`This is not JSON: ${error.message}`), { field: "" });
    }
  };
  const switchTo = (json) => {
    try {
      const now = definition();
      if (json) jsonBox.value = JSON.stringify(now, null, 2);
      else {
        Object.assign(values, toForm(now));
        if (!values["schedule.timezone"]) values["schedule.timezone"] = "";
        showTiming();
        showAction();
      }
    } catch (error) {
      tell(error.message, { isBad: true });
      way.choose(String(isJson));
      return;
    }
    isJson = json;
    byHand.classList.toggle("hidden", json);
    asJson.classList.toggle("hidden", !json);
    preview();
  };
  const way = choices(
    "Write it as",
    [
      ["false", "Form"],
      ["true", "JSON"],
    ],
    "false",
    (value) => switchTo(value === "true"),
  );

  // --- what the daemon says of it -----------------------------------------------------------------------------------------

  const showErrors = (errors) => {
    for (const control of form.querySelectorAll("[data-field]")) {
      control.removeAttribute("aria-invalid");
      document.getElementById(`${control.id}-wrong`)?.replaceChildren();
    }
    const homeless = [];
    for (const error of errors) {
      const control = isJson && error.field !== "slug" ? null : place(error.field);
      if (!control) homeless.push(error);
      else {
        control.setAttribute("aria-invalid", "true");
        control.closest("details")?.setAttribute("open", "");
        document.getElementById(`${control.id}-wrong`).append(quoted(error.message));
      }
    }
    general.classList.toggle("hidden", homeless.length === 0);
    fill(
      general,
      homeless.map((error) =>
        h("li", { class: "note bad" }, quoted(error.field ? `${error.field}: ${error.message}` : error.message)),
      ),
    );
  };
  const place = (name) => {
    for (
      let path = name.replace(/\[\d+\]|\.\d+/g, "");
      path;
      path = path.includes(".") ? path.slice(0, path.lastIndexOf(".")) : ""
    ) {
      const found =
        form.querySelector(`[data-field="${CSS.escape(path)}"]`) ??
        form.querySelector(`[data-field^="${CSS.escape(path)}."]`);
      if (found) return found;
    }
    return null;
  };
  const rehearse = async () => {
    const mine = ++asked;
    const name = slug.value.trim();
    if (!known && !touched()) {
      fill(words, "Say when and what, and this tells when it would run.");
      return;
    }
    try {
      const answer = await ask("PUT", schedulePath(name || "new-schedule"), {
        query: { dryRun: true },
        body: definition(),
        signal: visit.signal,
      });
      if (mine !== asked) return;
      showErrors([]);
      fill(words, quoted(answer.body.description ?? ""));
      fill(
        times,
        answer.body.next.length
          ? answer.body.next.map((time) => h("li", null, h("span", null, wall(at(time))), when(time)))
          : h("li", { class: "soft" }, "No planned time."),
      );
      const said = answer.headers.get("Wakeful-Warning");
      warning.classList.toggle("hidden", !said);
      fill(warning, said ? quoted(said) : null);
    } catch (error) {
      if (mine !== asked || error.name === "AbortError") return;
      fill(words, "It cannot be planned like this.");
      fill(times);
      warning.classList.add("hidden");
      showErrors(faults(error));
    }
  };
  const touched = () =>
    [
      "schedule.expression",
      "schedule.every",
      "schedule.times",
      "schedule.at",
      "prompt",
      "command.argv",
      "http.url",
      "call.target",
      "event.text",
    ].some((name) => values[name]) || isJson;
  const faults = (error) =>
    error instanceof Problem && error.errors.length
      ? error.errors
      : [{ field: error.field ?? "", message: error.message }];
  const preview = settled(() => {
    rehearse();
  }, 180);
  const save = async () => {
    asked += 1;
    const name = slug.value.trim();
    try {
      if (!name) throw Object.assign(new Error("give it a name, such as daily-standup"), { field: "slug" });
      await ask("PUT", schedulePath(name), {
        body: definition(),
        headers: known ? { "If-Match": etag } : { "If-None-Match": "*" },
      });
      tell(known ? `${name} was saved` : `${name} was created`);
      location.hash = `#/schedules/${name}`;
    } catch (error) {
      if (error.status === 412)
        showErrors([
          {
            field: known ? "" : "slug",
            message: known
              ? "It was changed by somebody else meanwhile; load it again before you write."
              : "there is one of this name already",
          },
        ]);
      else showErrors(faults(error));
      form.querySelector("[aria-invalid=true]")?.focus();
    }
  };

  showTiming();
  showAction();
  form.append(
    general,
    field("slug", "Name", slug, known ? null : "Small letters, digits, . _ and -; it is how you call it everywhere"),
    byHand,
    asJson,
    zones,
    h(
      "div",
      { class: "row" },
      save0,
      link("Cancel", known ? `#/schedules/${known}` : "#/schedules", { kind: "quiet" }),
    ),
  );
  if (known) await rehearse();
  else rehearse();
  visit.hear(["schedules"], (events) => {
    if (known && events.some((event) => event.slug === known && event.what === "removed"))
      tell(`${known} was deleted meanwhile`, { isBad: true });
  });
  const element = h(
    "div",
    { class: "stack" },
    h(
      "div",
      { class: "head" },
      h("div", { class: "words" }, h("h1", null, known ? ["Edit ", quoted(known)] : "New schedule")),
      h("div", { class: "actions" }, way),
    ),
    h(
      "div",
      { class: "columns" },
      panel(null, body(form)),
      h(
        "aside",
        { class: "preview stack", "aria-label": "Preview", "aria-live": "polite" },
        panel("It would run", body(words, warning, times)),
      ),
    ),
  );
  return { title: known ? `Edit ${known}` : "New schedule", element };
}
