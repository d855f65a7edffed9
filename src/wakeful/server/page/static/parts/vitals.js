// The facts in the bar: connection, failing schedules, running runs, and the health of the clock. While the page is not
// connected they are marked as stale, because they may no longer be true.

import { get } from "../lib/api.js";
import { h, say, throttled } from "../lib/dom.js";
import { count } from "../lib/text.js";
import { clock } from "../lib/time.js";
import { icon } from "./icons.js";

const LOOK_GAP = 5_000; // each check makes the daemon try a write
const STATES = {
  connecting: ["connecting", "--dawn"],
  live: ["live", "--succeeded"],
  broken: ["offline", "--failed"],
};

const pill = (name, props = {}) => h(props.href ? "a" : "span", { class: `pill ${name}`, ...props }, h("i"), h("span"));

function tell(element, words, colour) {
  say(element.lastChild, words);
  element.style.setProperty("--tint", `var(${colour})`);
  element.classList.toggle("hidden", !words);
}

/** The number of problems, and of warnings besides: the view of the health counts them in the same way. */
export function countProblems({ problems = [], findings = [] }) {
  const bad = findings.filter(({ level }) => level === "bad").length;
  return { bad: Math.max(bad, problems.length), warnings: findings.filter(({ level }) => level === "warn").length };
}

/** The elements for the bar, and the notice below it. */
export function vitals(stream) {
  const connection = pill("connection", { role: "status" });
  const failing = pill("failing", { href: "#/schedules?health=failing" });
  const running = pill("running", { href: "#/runs?outcome=running" });
  const health = pill("health", { href: "#/health" });
  const brief = h("b", { "aria-hidden": true }); // on a phone there is no room for its words
  health.prepend(icon("health"), brief);
  const notice = h("div", { class: "offline-note hidden", role: "alert" });
  let lastLive = null;

  stream.watch((state) => {
    const [words, colour] = STATES[state];
    if (state === "live") lastLive = Date.now();
    tell(connection, words, colour);
    connection.classList.toggle("live", state === "live");
    const isOffline = state === "broken" && lastLive !== null;
    document.documentElement.classList.toggle("offline", isOffline);
    notice.classList.toggle("hidden", state !== "broken");
    say(
      notice,
      lastLive === null
        ? "The daemon cannot be reached. Trying again…"
        : `Not connected to the daemon. What you see is from ${clock(lastLive)}. Trying again…`,
    );
    if (state === "live") look();
    else {
      tell(health, "unknown", "--faint");
      say(brief, "?");
    }
  });
  setInterval(() => {
    if (stream.state === "live") lastLive = Date.now();
  }, 1_000);

  const look = throttled(async () => {
    let report;
    try {
      report = await get("/healthz");
    } catch (error) {
      if (!error.body?.findings && error.status !== 503) return; // the connection says what is wrong
      report = error.body;
    }
    const { bad, warnings } = countProblems(report);
    tell(failing, report.failing ? `${report.failing} failing` : "", "--failed");
    tell(running, `${report.running ?? 0} running`, report.running ? "--running" : "--faint");
    tell(
      health,
      bad ? count(bad, "problem") : warnings ? count(warnings, "warning") : "healthy",
      bad ? "--failed" : warnings ? "--dawn" : "--succeeded",
    );
    say(brief, bad || warnings || "ok");
  }, LOOK_GAP);
  stream.hear((events) => {
    if (events.some((event) => event.stream !== "schedules")) look();
  });
  return { elements: [connection, failing, running, health], notice };
}
