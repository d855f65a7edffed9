// Import another scheduler's schedules: read its file, show the plan, choose what to import.

import { post } from "../lib/api.js";
import { fill, h, quoted } from "../lib/dom.js";
import { count } from "../lib/text.js";
import { at, localised, wall } from "../lib/time.js";
import { attempt, tell } from "../parts/dialogs.js";
import { body, button, choices, empty, field, head, link, panel } from "../parts/elements.js";
import { faultsOf, showFaults } from "../parts/field-errors.js";
import { chip } from "../parts/marks.js";

const WORDS = "Read the schedules of another scheduler, see what they would become here, and take over those you select.";
const KINDS = [
  ["crontab", "crontab", "30 6 * * 1-5  /home/me/bin/report --daily\n@reboot       /home/me/bin/sync"],
  ["systemd", "systemd timers", "[Timer]\nOnCalendar=Mon..Fri 06:30"],
  ["kubernetes", "Kubernetes CronJobs", "apiVersion: batch/v1\nkind: CronJob"],
  ["openclaw", "OpenClaw", ""],
  ["hermes", "Hermes", ""],
  ["claude", "Claude", ""],
  ["codex", "Codex", ""],
  ["caco", "caco", ""],
  ["openalice", "OpenAlice", ""],
  ["glm-tray", "GLM tray", ""],
];
const LOOKS = { create: "succeeded", update: "running", unchanged: "skipped", refused: "failed" };
const SAYS = { create: "new", update: "changes", unchanged: "unchanged", refused: "cannot be taken over" };

export default async function importing(visit) {
  let from = "text";
  let plan = null;
  const ticked = new Set();
  const kind = h("select", { onchange: () => hint() }, KINDS.map(([value, words]) => h("option", { value }, words)));
  const content = h("textarea", { class: "mono", rows: "8", spellcheck: "false" });
  const path = h("input", { type: "text", spellcheck: "false", placeholder: "/etc/cron.d" });
  const hint = () => (content.placeholder = KINDS.find(([value]) => value === kind.value)[2]);
  const general = h("ul", { class: "hidden", role: "alert" });
  const result = h("div", { "aria-live": "polite" });
  const source = () => ({
    kind: kind.value,
    ...(from === "text" ? { content: content.value } : from === "path" ? { path: path.value.trim() } : {}),
  });
  const send = (query, only) => post("/api/import", { ...source(), ...only }, query);

  const read = async (event) => {
    event?.preventDefault();
    try {
      plan = await send({});
      showFaults(form, general, []);
      ticked.clear();
      for (const one of plan.entries) if (["create", "update"].includes(one.action)) ticked.add(one.slug);
      show();
    } catch (error) {
      fill(result);
      showFaults(form, general, faultsOf(error));
    }
  };
  const take = () =>
    attempt(async () => {
      const done = await send({ apply: true }, { only: [...ticked] });
      tell(`${count(ticked.size, "schedule")} taken over`);
      plan = done;
      await read();
    });

  const show = () => {
    const takes = button("", take, { kind: "primary", symbol: "import", label: "Take over the selected schedules" });
    const draw = () => {
      takes.classList.remove("icon");
      fill(takes, ticked.size ? `Take over ${count(ticked.size, "schedule")}` : "Nothing is selected");
      takes.disabled = ticked.size === 0;
      takes.removeAttribute("aria-label");
    };
    const tick = (slug, is) => {
      is ? ticked.add(slug) : ticked.delete(slug);
      draw();
    };
    draw();
    fill(
      result,
      plan.entries.length
        ? panel(
            "The plan",
            { actions: takes },
            h("ul", { class: "plan", "aria-label": "Entries" }, plan.entries.map((one) => entry(one, ticked, tick))),
          )
        : panel(null, empty("import", "Nothing found", "There are no schedules in this source.")),
    );
  };

  const panes = {
    text: field("content", "Its text", content, "as printed by crontab -l, or the content of a file"),
    here: h("p", { class: "soft" }, "The places where this scheduler keeps its own schedules on the daemon's machine, such as crontab -l and /etc/cron.d."),
    path: field("path", "Path", path, "a file or folder on the daemon's machine; needs a login with the role admin"),
  };
  const pane = h("div");
  const form = h(
    "form",
    { class: "form", noValidate: true, autocomplete: "off", onsubmit: read },
    general,
    h(
      "div",
      { class: "pairs" },
      field("kind", "Scheduler", kind),
      h(
        "div",
        { class: "field" },
        h("span", { class: "label" }, "From"),
        choices(
          "From",
          [
            ["text", "Pasted text"],
            ["here", "This machine"],
            ["path", "A path"],
          ],
          from,
          (value) => {
            from = value;
            fill(pane, panes[value]);
          },
        ),
      ),
    ),
    pane,
    h("div", { class: "row" }, button("Show the plan", null, { kind: "primary", type: "submit" }), h("span", { class: "soft small" }, "This changes nothing yet.")),
  );
  fill(pane, panes.text);
  hint();
  return {
    title: "Import",
    element: h("div", { class: "stack" }, head("Import", WORDS, link("Schedules", "#/schedules", { kind: "quiet" })), panel(null, body(form)), result),
  };
}

/** One entry: its own text, what it becomes, and what is not carried over. */
function entry(one, ticked, tick) {
  const isOffered = one.slug !== null && ["create", "update"].includes(one.action);
  const id = `take-${one.slug}`;
  return h(
    "li",
    { data: { slug: one.slug ?? "" } },
    h("input", {
      type: "checkbox",
      id,
      disabled: !isOffered,
      checked: isOffered && ticked.has(one.slug),
      "aria-label": `Take over ${one.slug ?? one.source}`,
      onchange: (event) => tick(one.slug, event.target.checked),
    }),
    h(
      "div",
      { class: "stack tight" },
      h("div", { class: "row" }, one.slug ? h("label", { for: id }, h("b", null, quoted(one.slug))) : null, chip(LOOKS[one.action], { words: SAYS[one.action] })),
      h("pre", { class: "text", tabindex: 0, "aria-label": "In the source" }, quoted(one.source)),
      h("p", { class: "faint small" }, quoted(one.place), one.line ? `, line ${one.line}` : ""),
      one.description ? h("p", null, quoted(localised(one.description)), one.next.length ? h("span", { class: "soft" }, `; next ${one.next.map((time) => wall(at(time))).join(", ")}`) : null) : null,
      one.reason ? h("div", { class: "note bad" }, quoted(one.reason)) : null,
      one.notCarried.length ? h("div", { class: "note" }, h("span", null, "Not carried over: ", quoted(one.notCarried.join(", ")))) : null,
      one.notes.map((note) => h("p", { class: "soft small" }, quoted(note))),
      isOffered && one.definition
        ? h("details", null, h("summary", { class: "soft small" }, "Definition"), h("pre", { class: "text", tabindex: 0 }, quoted(JSON.stringify(one.definition, null, 2))))
        : null,
    ),
  );
}
