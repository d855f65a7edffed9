// What agents cost, by schedule, agent, model or day; and the budgets that limit it.

import { ask, get, post } from "../lib/api.js";
import { fill, h, quoted } from "../lib/dom.js";
import { amountOf, dollars, scopeWords, use } from "../lib/money.js";
import { count, placeOf } from "../lib/text.js";
import { DAY, format, wall, when } from "../lib/time.js";
import { bars } from "../parts/bars.js";
import { attempt } from "../parts/dialogs.js";
import { body, button, choices, empty, field, head, panel, table } from "../parts/elements.js";
import { askForm } from "../parts/form-dialog.js";

const WORDS = "What the turns of agents cost, as they report it or by the prices in the settings. Budgets stop runs before they start.";
const KEYS = [
  ["schedule", "By schedule"],
  ["agent", "By agent"],
  ["model", "By model"],
  ["day", "By day"],
];
const FIELDS = { "usd day": "budget.perDay", "usd month": "budget.perMonth", "tokens day": "budget.tokensPerDay" };
const DAYS = [
  ["7", "7 days"],
  ["30", "30 days"],
  ["90", "90 days"],
];

export default async function cost(visit) {
  const chosen = (name, options, usual) => {
    const asked = visit.query.get(name);
    return options.some(([value]) => value === asked) ? asked : usual;
  };
  let by = chosen("by", KEYS, "schedule");
  let days = chosen("days", DAYS, "30");
  const [budgets, spending, sums] = [h("div", { class: "cards" }), h("div"), h("div")];

  const load = async () => {
    const since = new Date(Date.now() - Number(days) * DAY).toISOString();
    const [limits, daily, rows] = await Promise.all([
      get("/api/budget", {}, visit.signal),
      get("/api/cost", { by: "day", since }, visit.signal),
      get("/api/cost", { by, since }, visit.signal),
    ]);
    sums.parentElement?.classList.toggle("hidden", rows.rows.length === 0);
    if (visit.isSame(by, days, limits, daily, rows)) return;
    fill(budgets, limits.stopped.map(stopped), limits.unpriced.map(unpriced), limits.budgets.map(budget), limits.budgets.length ? null : noBudget());
    fill(spending, daily.rows.length ? body(total(daily.total), perDay(daily.rows, Number(days))) : none(days));
    fill(sums, rows.rows.length ? sumsBy(by, rows) : null);
  };
  const again = () => load().catch(visit.ignore);
  const go = () => {
    history.replaceState(null, "", `#/cost?by=${by}&days=${days}`);
    again();
  };

  const stopped = (brake) =>
    h(
      "div",
      { class: "note bad" },
      h("div", { class: "grow" }, h("b", null, "Agent ", quoted(brake.agent), " is stopped. "), quoted(brake.reason), " ", when(brake.since)),
      button("Release", () => attempt(() => post(`/api/budget/${encodeURIComponent(brake.agent)}/release`), `${brake.agent} may work again`).then(again), { kind: "small" }),
    );
  const unpriced = (agent) =>
    h("div", { class: "note warn" }, h("div", { class: "grow" }, h("b", null, "Cost of ", quoted(agent.agent), " unknown. "), quoted(agent.sentence), ". ", quoted(agent.cure), "."));
  const noBudget = () =>
    panel(
      null,
      empty("coin", "No budgets", "Without one, agents may spend any amount. A run that does not fit is skipped; runs start again when the budget resets.", {
        action: button("Set a budget", () => edit(), { kind: "primary", symbol: "plus" }),
      }),
    );
  const budget = (limited) => {
    const share = use(limited);
    const unknown = limited.unknown ? [count(limited.unknown, "run"), limited.assumed ? ` (${amountOf(limited.assumed, limited.unit)} assumed)` : ""].join("") : null;
    return panel(
      quoted(scopeWords(limited.scope)),
      { actions: h("span", { class: "soft small" }, `per ${limited.period}`) },
      body(
        h(
          "div",
          { class: "figures" },
          figure(amountOf(limited.spent, limited.unit), "spent"),
          unknown ? figure(unknown, "of unknown cost") : null,
          figure(amountOf(limited.reserved, limited.unit), "reserved"),
          figure(amountOf(limited.limit, limited.unit), "limit"),
        ),
        meter(limited, share),
        h("p", { class: "soft small" }, "Resets ", when(limited.freesAt), `: ${wall(Date.parse(limited.freesAt), limited.zone)} (${limited.zone})`),
        limited.origin === "definition"
          ? h("p", { class: "small" }, h("a", { href: `${placeOf(limited.scope.slice(9))}/edit?field=${FIELDS[`${limited.unit} ${limited.period}`] ?? "budget"}` }, "Change it in the definition"))
          : h("div", { class: "row" }, button("Change", () => edit(limited), { kind: "small", symbol: "edit", label: `Change the budget of ${scopeWords(limited.scope)} per ${limited.period}` })),
      ),
    );
  };

  /** Set a limit: for all agents or one, per day or month. */
  const edit = async (limited = null) => {
    const { agents } = await get("/api/agents", {}, visit.signal);
    const option = (value, words, is) => h("option", { value, selected: value === is }, words);
    const scope = limited?.scope.replace(/^(all$|agent:)/, "") ?? "";
    const agent = h("select", { disabled: limited !== null }, option("", "All agents together", scope), agents.map(({ name }) => option(name, name, scope)));
    const period = h("select", { disabled: limited !== null }, option("day", "day", limited?.period), option("month", "month", limited?.period));
    const limit = h("input", { type: "text", inputmode: "decimal", value: limited ? String(limited.limit) : "", placeholder: "5.00" });
    const allow = h("input", { type: "checkbox" });
    const send = (amount) => ask("PUT", "/api/budget", { body: { period: period.value, limit: amount, agent: agent.value || null, ...(allow.checked ? { unpriced: "allow" } : {}) } });
    const given = () => {
      const amount = Number(limit.value.replace(",", "."));
      if (!limit.value.trim() || !(amount >= 0)) throw Object.assign(new Error("write an amount in US dollars, such as 5.00"), { field: "limit" });
      return amount;
    };
    const fields = h(
      "div",
      { class: "stack" },
      field("agent", "For", agent),
      field("period", "Per", period),
      field("limit", "Limit in US dollars", limit, limited?.origin === "set" ? "empty: the limit in wakeful.toml, or none" : "replaces the limit in wakeful.toml"),
      h("label", { class: "row" }, allow, "Set it although it cannot apply to agents of unknown cost"),
    );
    const save = () => send(limited?.origin === "set" && !limit.value.trim() ? null : given());
    if (await askForm(limited ? "Change the budget" : "Set a budget", fields, save)) again();
  };

  await visit.keep(["runs", "budgets"], load, { gap: 2_000, matters: (event) => event.stream !== "runs" || event.endedAt || event.outcome !== "running" });
  const element = h(
    "div",
    { class: "stack" },
    head("Cost", WORDS, button("Set a budget", () => edit(), { kind: "primary", symbol: "plus" })),
    h("section", { class: "stack", "aria-label": "Budgets" }, budgets),
    panel("Spending", { actions: choices("Period", DAYS, days, (value) => ((days = value), go())) }, spending),
    panel("Totals", { actions: choices("Totals by", KEYS, by, (value) => ((by = value), go())) }, sums),
  );
  again();
  return { title: "Cost", element };
}

const figure = (value, words) => h("div", null, h("b", null, value), h("span", null, words));

const none = (days) => empty("coin", "Nothing spent", `No agent reported usage in the last ${days} days.`);

/** Spent and reserved as one bar; the text beside it says the same. */
function meter(budget, share) {
  const percent = budget.limit > 0 ? Math.round((100 * budget.spent) / budget.limit) : 100;
  return h(
    "div",
    {
      class: "meter",
      role: "meter",
      "aria-valuemin": "0",
      "aria-valuemax": "100",
      "aria-valuenow": String(Math.min(100, percent)),
      "aria-label": `${scopeWords(budget.scope)} per ${budget.period}: ${percent}% spent`,
      data: { o: share.look },
    },
    h("i", { style: { width: `${100 * share.spent}%` } }),
    h("i", { class: "held", style: { width: `${100 * share.reserved}%` } }),
    h("span", { "aria-hidden": true }, `${percent}%`),
  );
}

const total = (sum) =>
  h(
    "div",
    { class: "figures" },
    figure(dollars(sum.cost), "spent"),
    figure(sum.runs.toLocaleString(), sum.runs === 1 ? "run" : "runs"),
    figure(sum.tokens.toLocaleString(), "tokens"),
    sum.unknown ? figure(sum.unknown.toLocaleString(), "attempts of unknown cost") : null,
  );

/** The days since the first run of the period, also those without runs; a week at least, or one day would fill it. */
function perDay(rows, days) {
  const known = new Map(rows.map((row) => [row.key, row]));
  const [long, short] = [format({ weekday: "short", day: "numeric", month: "short" }, "UTC"), format({ day: "numeric" }, "UTC")];
  const last = Date.parse(rows.at(-1).key);
  const first = Math.max(Math.min(Date.parse(rows[0].key), last - 6 * DAY), last - (days - 1) * DAY);
  const points = [];
  for (let day = first; day <= last; day += DAY) {
    const row = known.get(new Date(day).toISOString().slice(0, 10));
    points.push({ label: short.format(day), value: row?.cost ?? 0, words: `${long.format(day)}: ${dollars(row?.cost ?? 0)}, ${count(row?.runs ?? 0, "run")}` });
  }
  return bars("Cost per day", points);
}

function sumsBy(by, { rows, total: sum }) {
  const name = { schedule: "Schedule", agent: "Agent", model: "Model", day: "Day" }[by];
  const key = (row) =>
    by === "schedule" && row.key ? h("a", { href: placeOf(row.key) }, quoted(row.key)) : quoted(row.key || "unknown");
  const most = Math.max(...rows.map((row) => row.cost), Number.MIN_VALUE);
  const cells = (row, label) => [
    label,
    row.runs.toLocaleString(),
    row.tokens.toLocaleString(),
    dollars(row.cost),
    row.unknown ? row.unknown.toLocaleString() : "–",
    h("span", { class: "share", "aria-hidden": true }, h("i", { style: { width: `${(100 * row.cost) / most}%` } })),
  ];
  const lines = [...rows.map((row) => cells(row, key(row))), [...cells(sum, h("b", null, "Total")).slice(0, 5), ""]];
  return table("Totals", [name, "Runs", "Tokens", "Cost", "Cost unknown", "Share"], lines);
}
