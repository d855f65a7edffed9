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
  ["celery-beat", "Celery beat", 'beat_schedule = {\n  "nightly": {"task": "reports.build", "schedule": crontab(hour=4, minute=30)},\n}'],
  ["apscheduler", "APScheduler", ""],
  ["launchd", "launchd", ""],
  ["at", "at", ""],
  ["github-actions", "GitHub Actions", "on:\n  schedule:\n    - cron: '30 5 * * 1'\n  workflow_dispatch:"],
  ["airflow", "Airflow", 'with DAG("nightly", schedule="30 4 * * *"):\n    ...'],
  ["n8n", "n8n", ""],
  ["home-assistant", "Home Assistant", "- alias: Morning\n  triggers:\n    - trigger: time\n      at: \"07:30:00\""],
  ["caco", "caco", ""],
  ["openalice", "OpenAlice", ""],
  ["glm-tray", "GLM tray", ""],
];
const LOOKS = { create: "succeeded", update: "running", unchanged: "skipped", refused: "failed" };
const SAYS = { create: "new", update: "changes", unchanged: "unchanged", refused: "cannot be taken over" };

export default async function importing(visit) {
  let from = "text";
  let plan = null;
  const selected = new Set();
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
      selected.clear();
      for (const item of plan.entries) if (["create", "update"].includes(item.action)) selected.add(item.slug);
      show();
    } catch (error) {
      fill(result);
      showFaults(form, general, faultsOf(error));
    }
  };
  const take = () =>
    attempt(async () => {
      const done = await send({ apply: true }, { only: [...selected] });
      tell(`${count(selected.size, "schedule")} taken over`);
      plan = done;
      await read();
    });

  const show = () => {
    const takes = button("", take, { kind: "primary", symbol: "import", label: "Take over the selected schedules" });
    const draw = () => {
      takes.classList.remove("icon");
      fill(takes, selected.size ? `Take over ${count(selected.size, "schedule")}` : "Nothing is selected");
      takes.disabled = selected.size === 0;
      takes.removeAttribute("aria-label");
    };
    const choose = (slug, is) => {
      is ? selected.add(slug) : selected.delete(slug);
      draw();
    };
    draw();
    fill(
      result,
      plan.entries.length
        ? panel(
            "The plan",
            { actions: takes },
            h("ul", { class: "plan", "aria-label": "Entries" }, plan.entries.map((item) => entry(item, selected, choose))),
          )
        : panel(null, empty("import", "Nothing found", "There are no schedules in this source.")),
    );
  };

  const panes = {
    text: field("content", "Text to import", content, "as printed by crontab -l, or the content of a file"),
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
    element: h("div", { class: "stack" }, head("Import", WORDS, link("Schedules", "#/schedules", { symbol: "list" })), panel(null, body(form)), result),
  };
}

/** One entry: its own text, what it becomes, and what is not carried over. */
function entry(item, selected, choose) {
  const isOffered = item.slug !== null && ["create", "update"].includes(item.action);
  const id = `take-${item.slug}`;
  return h(
    "li",
    { data: { slug: item.slug ?? "" } },
    h("input", {
      type: "checkbox",
      id,
      disabled: !isOffered,
      checked: isOffered && selected.has(item.slug),
      "aria-label": `Take over ${item.slug ?? item.source}`,
      onchange: (event) => choose(item.slug, event.target.checked),
    }),
    h(
      "div",
      { class: "stack tight" },
      h("div", { class: "row" }, item.slug ? h("label", { for: id }, h("b", null, quoted(item.slug))) : null, chip(LOOKS[item.action], { words: SAYS[item.action] })),
      h("pre", { class: "text", tabindex: 0, "aria-label": "In the source" }, quoted(item.source)),
      h("p", { class: "faint small" }, quoted(item.place), item.line ? `, line ${item.line}` : ""),
      item.description ? h("p", null, quoted(localised(item.description)), item.next.length ? h("span", { class: "soft" }, `; next ${item.next.map((time) => wall(at(time))).join(", ")}`) : null) : null,
      item.reason ? h("div", { class: "note bad" }, quoted(item.reason)) : null,
      item.notCarried.length ? h("div", { class: "note" }, h("span", null, "Not carried over: ", quoted(item.notCarried.join(", ")))) : null,
      item.settings ? h("pre", { class: "mono small" }, item.settings) : null,
      item.draft ? h("div", { class: "note" }, h("span", null, "A draft, created disabled: ", quoted(item.draft))) : null,
      item.notes.map((note) => h("p", { class: "soft small" }, quoted(note))),
      isOffered && item.definition
        ? h("details", null, h("summary", { class: "soft small" }, "Definition"), h("pre", { class: "text", tabindex: 0 }, quoted(JSON.stringify(item.definition, null, 2))))
        : null,
    ),
  );
}
