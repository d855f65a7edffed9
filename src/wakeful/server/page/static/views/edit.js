// Create and edit a schedule: a form with a live preview of its times and errors; or the same as JSON.

import { ask, schedulePath } from "../lib/api.js";
import { fill, h, quoted, settled } from "../lib/dom.js";
import { controlsOf, fromForm, scheduleForm, toForm, written } from "../lib/definition.js";
import { at, localZone, localised, wall, when } from "../lib/time.js";
import { tell } from "../parts/dialogs.js";
import { definitionFields } from "../parts/definition-fields.js";
import { question, understand } from "../parts/sentence.js";
import { faultsOf, showFaults } from "../parts/field-errors.js";
import { body, button, choices, field, link, panel } from "../parts/elements.js";
import { whatWouldChange } from "../parts/simulation.js";

/** Focus the first control of a field, in the options that hide it. `needed`: the amount that would be enough. */
function showField(form, name, needed) {
  const control = name && form.querySelector(`[data-field="${CSS.escape(name)}"], [data-field^="${CSS.escape(name)}."]`);
  if (!control) return;
  control.closest("details")?.setAttribute("open", "");
  const hint = needed > 0 && document.getElementById(`${control.id}-hint`);
  if (hint) hint.append(h("b", null, `; ${name.includes("tokens") ? needed.toLocaleString() : needed.toFixed(2)} is enough for one more run`));
  control.scrollIntoView({ block: "center" });
  control.focus({ preventScroll: true });
}

const UNFINISHED = "Fill in a timing and an action to see when it would run.";

/** A name as it is typed, as a slug: `Morning Digest` is morning-digest. */
const slugOf = (text) => text.trim().toLowerCase().replace(/[^a-z0-9._-]+/g, "-").replace(/^[-._]+|-+$/g, "");

export default async function edit(visit) {
  const known = visit.params[0] ?? null;
  let etag = null;
  let stored = null;
  const described = await scheduleForm();
  if (known) {
    const answer = await ask("GET", schedulePath(known), { signal: visit.signal });
    etag = answer.headers.get("etag");
    stored = written(described, answer.body);
  }
  const values = toForm(described, stored);
  if (!known) values["schedule.timezone"] = localZone;
  let isJson = false;
  let asked = 0;

  const form = h("form", {
    class: "form",
    noValidate: true,
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
    onchange: () => {
      slug.value = slugOf(slug.value);
    },
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
  const reached = new Set(); // of a new schedule: the controls that were filled in or left
  const reach = ({ target }) => {
    if (target.dataset?.field) reached.add(target.dataset.field);
  };
  form.addEventListener("input", reach);
  form.addEventListener("focusout", (event) => {
    reach(event);
    if (!known && touched()) preview();
  });
  const save0 = button(known ? "Save" : "Create", null, { kind: "primary", type: "submit" });

  const fields = definitionFields(described, values, () => preview());
  const asJson = h("div", { class: "field hidden" }, jsonBox, h("span", { class: "wrong", role: "alert" }));

  // --- form and JSON ------------------------------------------------------------------------------------------------------

  const definition = () => {
    if (!isJson) return fromForm(described, values);
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
        for (const name of Object.keys(values)) delete values[name];
        Object.assign(values, toForm(described, now));
        fields.show();
      }
    } catch (error) {
      tell(error.message, { isBad: true });
      way.choose(String(isJson));
      return;
    }
    isJson = json;
    fields.element.classList.toggle("hidden", json);
    asJson.classList.toggle("hidden", !json);
    preview();
  };
  const way = choices(
    "Edit as",
    [
      ["false", "Form"],
      ["true", "JSON"],
    ],
    "false",
    (value) => switchTo(value === "true"),
  );

  // --- preview ------------------------------------------------------------------------------------------------------------

  const showErrors = (errors) =>
    showFaults(form, general, errors.map((fault) => (fault.field === "action" ? { ...fault, field: values.action } : fault)), {
      isAtFields: !isJson,
      isReached: ({ dataset }) => known !== null || reached.has(dataset.field),
    });
  const rehearse = async () => {
    const mine = ++asked;
    const name = slugOf(slug.value);
    if (!known && !touched()) {
      fill(words, UNFINISHED);
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
      fill(words, quoted(localised(answer.body.description ?? "")));
      fill(
        times,
        answer.body.next.length
          ? answer.body.next.map((time) => h("li", null, h("span", null, wall(at(time))), when(time)))
          : h("li", { class: "soft" }, "No planned times."),
      );
      const said = answer.headers.get("Wakeful-Warning");
      warning.classList.toggle("hidden", !said);
      fill(warning, said ? quoted(said) : null);
    } catch (error) {
      if (mine !== asked || error.name === "AbortError") return;
      fill(times);
      warning.classList.add("hidden");
      const waiting = showErrors(faultsOf(error));
      fill(words, waiting === faultsOf(error).length ? UNFINISHED : "This cannot be planned.");
    }
  };
  const touched = () =>
    isJson || controlsOf(described, values).some(({ name, required }) => required && values[name]);
  const preview = settled(() => {
    rehearse();
  }, 180);
  const save = async () => {
    asked += 1;
    slug.value = slugOf(slug.value);
    const name = slug.value;
    for (const control of form.querySelectorAll("[data-field]")) reached.add(control.dataset.field);
    try {
      if (!name) throw Object.assign(new Error("enter a name, such as daily-standup"), { field: "slug" });
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
              ? "It was changed elsewhere in the meantime; reload it before you save."
              : "a schedule with this name already exists",
          },
        ]);
      else showErrors(faultsOf(error));
      form.querySelector("[aria-invalid=true]")?.focus();
    }
  };

  // --- in words -----------------------------------------------------------------------------------------------------------

  const unclear = h("div", { class: "stack", "aria-live": "polite" });
  const sentence = h("input", {
    type: "text",
    placeholder: "every weekday at 9 summarise my mail",
    autocapitalize: "none",
    oninput: () => read(),
  });
  const read = settled(async () => {
    const text = sentence.value;
    const answer = await understand(text).catch(() => null);
    if (text !== sentence.value) return;
    fill(unclear, answer && !answer.definition && answer.when ? question(answer, choose) : null);
    if (answer?.assumed.length) fill(unclear, h("p", { class: "soft" }, quoted(`Assumed: ${answer.assumed.join("; ")}.`)));
    if (!answer?.definition) return;
    const { slug: name, ...meant } = answer.definition;
    if (!reached.has("slug")) slug.value = name;
    Object.assign(values, toForm(described, meant));
    fields.show();
    preview();
  }, 250);
  const choose = (text) => {
    sentence.value = text;
    sentence.focus();
    read();
  };

  form.append(
    general,
    ...(known ? [] : [field("sentence", "In words", sentence, "What should happen, and when. It fills in the fields below."), unclear]),
    field("slug", "Name", slug, known ? null : "Lower-case letters, digits, . _ and -; this name is used everywhere"),
    fields.element,
    asJson,
    h(
      "div",
      { class: "row" },
      save0,
      link("Cancel", known ? `#/schedules/${known}` : "#/schedules", { kind: "quiet" }),
    ),
  );
  const change = await whatWouldChange(() => ({ ...definition(), slug: slugOf(slug.value) || "new-schedule" }));
  if (known) await rehearse();
  else rehearse();
  visit.hear(["schedules"], (events) => {
    if (known && events.some((event) => event.slug === known && event.what === "removed"))
      tell(`${known} was deleted in the meantime`, { isBad: true });
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
        change,
      ),
    ),
  );
  const ready = () => {
    const asked = visit.query.get("field");
    showField(form, asked === "action" ? values.action : asked, Number(visit.query.get("needed")));
  };
  return { title: known ? `Edit ${known}` : "New schedule", element, ready };
}
