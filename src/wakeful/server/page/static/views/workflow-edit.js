// Create and edit a workflow as JSON, with a picture of it and its errors while you type.

import { ask, get } from "../lib/api.js";
import { fill, h, quoted, settled } from "../lib/dom.js";
import { tell } from "../parts/dialogs.js";
import { body, button, field, link, panel } from "../parts/elements.js";
import { faultsOf, showFaults } from "../parts/field-errors.js";
import { graph } from "../parts/graph.js";

const EXAMPLE = {
  producers: { poll: { schedule: { type: "every", every: "5m" }, publishes: ["mail"], handler: { http: { url: "http://127.0.0.1:9100/poll" } } } },
  consumers: { digest: { subscribe: ["mail"], publishes: [], handler: { http: { url: "http://127.0.0.1:9100/digest" } } } },
};
const ADDED = {
  producers: { schedule: { type: "every", every: "5m" }, publishes: ["mail"], handler: { http: { url: "http://127.0.0.1:9100/poll" } } },
  consumers: { subscribe: ["mail"], publishes: [], mutate: true, handler: { http: { url: "http://127.0.0.1:9100/digest" } } },
};

export default async function workflowEdit(visit) {
  const known = visit.params[0] ?? null;
  const path = (id) => `/api/workflows/${encodeURIComponent(id)}`;
  let etag = null;
  let start = EXAMPLE;
  if (known) {
    const answer = await ask("GET", path(known), { signal: visit.signal });
    etag = answer.headers.get("etag");
    start = await written(answer.body, visit.signal);
  }
  const name = h("input", { type: "text", value: known ?? "", disabled: known !== null, placeholder: "inbox", spellcheck: "false", autocapitalize: "none", maxlength: 64, oninput: () => check() });
  const text = h("textarea", { class: "json", spellcheck: "false", value: JSON.stringify(start, null, 2), oninput: () => draw() });
  const general = h("ul", { class: "hidden", role: "alert" });
  const picture = h("div");
  const verdict = h("p", { class: "soft", role: "status" });
  const force = h("input", { type: "checkbox" });

  const definition = () => {
    try {
      return JSON.parse(text.value);
    } catch (error) {
      throw Object.assign(new Error(`This is not JSON: ${error.message}`), { field: "definition" });
    }
  };
  const draw = () => {
    try {
      fill(picture, graph(definition()));
      showFaults(form, general, []);
      fill(verdict, "");
      check();
    } catch (error) {
      showFaults(form, general, faultsOf(error));
    }
  };
  /** Ask the daemon; it calls each handler once as a dry run. */
  const rehearse = async () => {
    try {
      await ask("PUT", path(name.value.trim() || "new"), { query: { dryRun: true, force: true }, body: definition(), signal: visit.signal });
      showFaults(form, general, []);
      fill(verdict, "The definition is valid.");
    } catch (error) {
      if (error.name === "AbortError") return;
      fill(verdict, "");
      showFaults(form, general, faultsOf(error));
    }
  };
  const check = settled(rehearse, 500);
  const add = (kind) => {
    try {
      const now = definition();
      const names = Object.keys(now[kind] ?? {});
      let number = names.length + 1;
      while (names.includes(`${kind.slice(0, -1)}-${number}`)) number += 1;
      now[kind] = { ...now[kind], [`${kind.slice(0, -1)}-${number}`]: ADDED[kind] };
      text.value = JSON.stringify(now, null, 2);
      draw();
    } catch (error) {
      tell(error.message, { isBad: true });
    }
  };
  const save = async (event) => {
    event.preventDefault();
    const id = name.value.trim();
    try {
      if (!id) throw Object.assign(new Error("enter a name, such as inbox"), { field: "id" });
      await ask("PUT", path(id), {
        query: force.checked ? { force: true } : {},
        body: definition(),
        headers: known ? { "If-Match": etag } : { "If-None-Match": "*" },
      });
      tell(`${id} was deployed`);
      location.hash = `#/workflows/${encodeURIComponent(id)}`;
    } catch (error) {
      const isTaken = error.status === 412;
      const message = known ? "It was changed elsewhere in the meantime; reload it before you deploy." : "a workflow with this name already exists";
      showFaults(form, general, isTaken ? [{ field: known ? "" : "id", message }] : faultsOf(error));
      form.querySelector("[aria-invalid=true]")?.focus();
    }
  };
  const form = h(
    "form",
    { class: "form", noValidate: true, autocomplete: "off", onsubmit: save },
    general,
    field("id", "Name", name, known ? null : "lower-case letters, digits, . _ and -"),
    h(
      "div",
      { class: "row" },
      button("Add a producer", () => add("producers"), { kind: "small", symbol: "plus" }),
      button("Add a consumer", () => add("consumers"), { kind: "small", symbol: "plus" }),
    ),
    field("definition", "Definition", text, "producers publish messages on a schedule, consumers act on them; every field is in docs/definition.md"),
    verdict,
    h("label", { class: "row check" }, force, "Deploy even if a handler cannot be reached"),
    h("div", { class: "row" }, button("Deploy", null, { kind: "primary", type: "submit" }), link("Cancel", known ? `#/workflows/${encodeURIComponent(known)}` : "#/workflows", { kind: "quiet" })),
  );
  draw();
  return {
    title: known ? `Edit ${known}` : "New workflow",
    element: h(
      "div",
      { class: "stack" },
      h("div", { class: "head" }, h("div", { class: "words" }, h("h1", null, known ? ["Edit ", quoted(known)] : "New workflow"))),
      panel(null, body(picture)),
      panel(null, body(form)),
    ),
  };
}

/** The workflow's definition, without its state. */
async function written(workflow, signal) {
  const fields = await get("/api/forms/workflow", {}, signal);
  const only = (names, handlers) =>
    Object.fromEntries(
      Object.entries(handlers).map(([id, handler]) => [id, Object.fromEntries(Object.entries(handler).filter(([name]) => names.includes(name)))]),
    );
  return {
    status: workflow.status,
    producers: only(fields.producer, workflow.producers),
    consumers: only(fields.consumer, workflow.consumers),
  };
}
