// Agents: program, version, sessions, last turns, cost, and the quota windows; test one, connect one.

import { get, has, post, settingsFile } from "../lib/api.js";
import { fill, h, quoted } from "../lib/dom.js";
import { dollars } from "../lib/money.js";
import { placeOf, short } from "../lib/text.js";
import { when } from "../lib/time.js";
import { attempt, show as showDialog } from "../parts/dialogs.js";
import { chip, mark } from "../parts/marks.js";
import { body, button, copyable, facts, head, link, meter, panel } from "../parts/elements.js";

const WORDS = "Agents reply to prompts. A schedule, the heartbeat or a conversation names the agent it uses.";
const ECHO = "It returns each prompt as its reply: a stand-in, until a real agent is configured.";
const CONNECTABLE = ["claude", "codex", "gemini", "opencode"];
const BEGIN = '[agents.default]\nadapter = "claude"';
const WRONG = ["failed", "timedOut", "unconfirmed", "unknown"];
const PROVES = {
  accepted: "it accepted the prompt",
  started: "it started on the prompt",
  finished: "it replied",
};

export default async function agents(visit) {
  const [hasSlots, file] = await Promise.all([has("/api/slots"), settingsFile()]);
  const list = h("div", { class: "cards" });
  const windows = h("div");
  const windowPanel = panel("Quota windows", { actions: link("Quota slots", "#/slots", { kind: "small" }) }, windows);
  const way = h("div");
  const tests = new Map(); // agent → its latest test, a run
  let again = null;

  const test = async (agent) => {
    await attempt(async () => {
      const { runId } = await post(`/api/agents/${encodeURIComponent(agent.name)}/test`);
      tests.set(agent.name, { runId, outcome: "running" });
    }, `${agent.name}: test requested`);
    again();
  };
  const load = async () => {
    const [data, slots] = await Promise.all([
      get("/api/agents", {}, visit.signal),
      hasSlots ? get("/api/slots", {}, visit.signal) : { slots: [] },
    ]);
    for (const [name, run] of tests)
      if (["running", "waiting"].includes(run.outcome))
        tests.set(name, await get(`/api/runs/${run.runId}`, {}, visit.signal));
    if (visit.isSame(data, slots, [...tests])) return;
    fill(
      list,
      data.agents.map((agent) => {
        const slot = slots.slots.find(({ name }) => name === `agent-${agent.name}`);
        return card(agent, slot, tests.get(agent.name), test);
      }),
    );
    fill(way, data.agents.every((agent) => agent.adapter === "echo") ? realAgent(file) : null);
    fill(windows, h("ul", { class: "glances" }, slots.slots.map(windowRow)));
    windowPanel.classList.toggle("hidden", !slots.slots.length);
  };
  again = await visit.keep(["runs", "settings", "slots"], load, { gap: 2_000 });
  return { title: "Agents", element: h("div", { class: "stack" }, head("Agents", WORDS), way, list, windowPanel) };
}

/** The way from the stand-in to a real agent. */
const realAgent = (file) =>
  panel(
    "Add a real agent",
    body(
      h(
        "p",
        null,
        "Only the echo agent is configured. This command looks for installed agents (claude, codex, gemini, opencode, qwen, copilot, aider, goose, cursor, amp) and writes them into the settings:",
      ),
      copyable("wakeful init"),
      h("p", null, "Or write it yourself into ", h("code", null, file), "; it takes effect when it is saved:"),
      copyable(BEGIN),
    ),
  );

function card(agent, slot, tested, test) {
  const isEcho = agent.adapter === "echo";
  return panel(
    quoted(agent.name),
    {
      actions: h(
        "span",
        { class: "row" },
        health(agent),
        h("span", { class: "soft small" }, quoted(isEcho ? "echo, a stand-in" : agent.adapter)),
      ),
    },
    body(
      isEcho ? h("p", { class: "soft" }, ECHO) : null,
      agent.problem ? h("div", { class: "note bad" }, quoted(agent.problem)) : null,
      facts([
        ["Program", agent.program ? path(agent.program) : null],
        ["Version", agent.program ? quoted(agent.version ?? "unknown") : null],
        ["Success means", PROVES[agent.proves] ?? agent.proves],
        ["Sessions", agent.sessions],
        ["Quota window", slot ? windowWords(slot) : null],
        ["Cost today", dollars(agent.cost.today)],
        ["This month", dollars(agent.cost.month)],
      ]),
      h("h3", null, "Last turns"),
      agent.turns.length
        ? h("ul", { class: "turns" }, agent.turns.map(turnRow))
        : h("p", { class: "faint" }, "none yet"),
      tested ? testResult(tested) : null,
      h(
        "div",
        { class: "row" },
        button("Test", () => test(agent), { symbol: "play", label: `Test ${agent.name} with a real prompt` }),
        CONNECTABLE.includes(agent.adapter)
          ? button("Connect", () => connect(agent), { label: `Connect ${agent.name} to Wakeful's tools` })
          : null,
      ),
    ),
  );
}

/** Whether it can work: its program is there, and its last turn did not fail. */
function health(agent) {
  if (agent.problem) return chip("failed", { words: "missing" });
  const last = agent.turns.find(({ outcome }) => !["running", "waiting"].includes(outcome));
  return !last ? null : WRONG.includes(last.outcome) ? chip("failed", { words: "failing" }) : chip("succeeded", { words: "ok" });
}

/** A path that is broken after a slash, if it does not fit. */
const path = (text) => h("bdi", { class: "mono" }, text.split(/(?<=\/)/).map((part) => [part, h("wbr")]));

const turnRow = (turn, place, all) =>
  h(
    "li",
    null,
    mark(turn.outcome),
    h("a", { class: "cut grow", href: `#/runs/${turn.runId}` }, quoted(turn.slug)),
    when(turn.at),
    turn.error && turn.error !== all[place - 1]?.error ? quoted(short(turn.error, 200), { class: "soft small error" }) : null,
  );

const testResult = (run) =>
  h(
    "div",
    { class: run.error ? "note bad" : "note", role: "status" },
    h(
      "div",
      { class: "grow" },
      h("a", { href: `#/runs/${run.runId}` }, "Test"),
      " ",
      chip(run.outcome),
      run.error || run.reply ? h("p", null, quoted(short(run.error ?? run.reply, 300))) : null,
    ),
  );

/** How to let the program's own sessions use Wakeful's tools. */
function connect(agent) {
  showDialog(
    `Connect ${agent.name}`,
    h(
      "p",
      { class: "soft" },
      "This command registers Wakeful's tools in the settings of the program, so that the agent can plan its own wake-ups in sessions that you start yourself. Runs that Wakeful starts have the tools already.",
    ),
    copyable(`wakeful agents connect ${agent.name}`),
  );
}

const usedWords = (slot) => (slot.percentage === null ? "unknown" : `${Math.round(slot.percentage)}% used`);

const windowWords = (slot) => [usedWords(slot), slot.nextResetTime ? [", resets ", when(slot.nextResetTime)] : null];

function windowRow(slot) {
  const used = usedWords(slot);
  return h(
    "li",
    null,
    h("a", { class: "cut", href: placeOf(`slot:${slot.name}`) }, quoted(slot.name)),
    meter(slot.percentage, `${slot.name}: ${used}`),
    h("span", { class: "soft small" }, used),
    slot.nextResetTime ? h("span", { class: "soft" }, "resets ", when(slot.nextResetTime)) : null,
  );
}
