// The frame: navigation, the current view, and the state of the clock.

import { get, logIn, logInFromAddress, whenLoginNeeded } from "./lib/api.js";
import { fill, h, say, throttled } from "./lib/dom.js";
import { Stream } from "./lib/stream.js";
import { format, keepTime, localZone } from "./lib/time.js";
import { Visit } from "./lib/view.js";
import { askText } from "./parts/dialogs.js";
import { icon } from "./parts/icons.js";
import { keepBadges } from "./parts/badges.js";
import { openPalette } from "./parts/palette.js";
import { button, link, loading, trouble } from "./parts/elements.js";

const PLACES = [
  [null, ["timeline", "Timeline", "timeline"], ["schedules", "Schedules", "list"], ["runs", "Ledger", "ledger"]],
  [
    "Agents",
    ["heartbeat", "Heartbeat", "heart"],
    ["workflows", "Workflows", "flow"],
    ["slots", "Quota slots", "gauge"],
  ],
  ["Messages", ["inbox", "Inbox", "inbox"], ["outbox", "Outbox", "out"], ["channels", "Channels", "channel"]],
  ["System", ["health", "Nodes and health", "health"], ["log", "Live log", "log"]],
];

const ROUTES = [
  [/^timeline$/, "timeline"],
  [/^schedules$/, "schedules"],
  [/^schedules\/([^/]+)$/, "schedule"],
  [/^schedules\/([^/]+)\/edit$/, "edit"],
  [/^new$/, "edit"],
  [/^runs$/, "runs"],
  [/^runs\/(\d+)$/, "run"],
  [/^heartbeat$/, "heartbeat"],
  [/^workflows$/, "workflows"],
  [/^workflows\/([^/]+)$/, "workflow"],
  [/^slots$/, "slots"],
  [/^inbox$/, "inbox"],
  [/^outbox$/, "outbox"],
  [/^channels$/, "channels"],
  [/^health$/, "health"],
  [/^log$/, "log"],
];

const stream = new Stream();
const content = h("main", { class: "content", id: "main", tabindex: -1 });
let visit = null;

function parse() {
  const [path, asked] = location.hash.replace(/^#\/?/, "").split("?");
  for (const [pattern, name] of ROUTES) {
    const found = pattern.exec(path);
    if (found) return { name, path, params: found.slice(1).map(decodeURIComponent), query: new URLSearchParams(asked) };
  }
  return { name: "timeline", path: "timeline", params: [], query: new URLSearchParams() };
}

async function show() {
  const place = parse();
  visit?.leave();
  const mine = (visit = new Visit(stream, place.params, place.query));
  for (const item of document.querySelectorAll("[data-place]")) {
    const isHere = item.dataset.place === place.path.split("/")[0];
    if (isHere) item.setAttribute("aria-current", "page");
    else item.removeAttribute("aria-current");
  }
  closeMenu();
  delete content.dataset.at;
  const waiting = setTimeout(() => fill(content, loading()), 150);
  try {
    const { default: view } = await import(`./views/${place.name}.js`);
    if (mine.signal.aborted) return;
    const { title, element } = await view(mine);
    if (mine.signal.aborted) return;
    clearTimeout(waiting);
    document.title = `${title} · Wakeful`;
    fill(content, element);
    content.dataset.at = place.path;
  } catch (error) {
    if (mine.signal.aborted) return;
    clearTimeout(waiting);
    fill(content, trouble(error, show));
    if (!error.status) console.error(error);
  }
  if (document.activeElement === document.body || !document.activeElement?.closest(".side, .bar, dialog"))
    content.focus({ preventScroll: true });
  window.scrollTo(0, 0);
}

// --- the scheme -------------------------------------------------------------------------------------------------------

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function switchTheme() {
  const theme = isDark() ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem("wakeful.theme", theme);
  } catch {
    // Applies to this page only.
  }
  drawTheme();
  dispatchEvent(new Event("theme"));
}

const themeButton = button("", switchTheme, { kind: "quiet", symbol: "moon", label: "Dark or light" });
const drawTheme = () => fill(themeButton, icon(isDark() ? "sun" : "moon"));

// --- the frame --------------------------------------------------------------------------------------------------------

const places = PLACES.flatMap(([, ...some]) => some);
const clock = h("b");
const zone = h("span", null, localZone);
const side = h(
  "aside",
  { class: "side", id: "menu" },
  brand(),
  PLACES.map(([title, ...some]) =>
    h(
      "nav",
      { "aria-label": title ?? "Main" },
      title ? h("h2", null, title) : null,
      some.map(([name, words, symbol]) => h("a", { href: `#/${name}`, data: { place: name } }, icon(symbol), words)),
    ),
  ),
  h("div", { class: "side-foot" }, clock, zone),
);
const veil = h("button", { class: "veil hidden", type: "button", "aria-label": "Close the menu", onclick: closeMenu });
const connection = h("span", { class: "pill", role: "status" }, h("i"), h("span", null, "connecting"));
const health = h(
  "a",
  { class: "pill", href: "#/health" },
  h("i"),
  h("span", { class: "unseen" }, "Health: "),
  h("span", null, "…"),
);

function brand() {
  return h(
    "a",
    { class: "brand", href: "#/timeline", "aria-label": "Wakeful: go to the timeline" },
    h("img", { src: "/page/icon.svg", alt: "" }),
    "Wakeful",
  );
}

function openMenu() {
  side.classList.add("open");
  veil.classList.remove("hidden");
  side.querySelector("nav a").focus();
}

function closeMenu() {
  side.classList.remove("open");
  veil.classList.add("hidden");
}

/** Wall view, for an unattended screen: only the view, as large as possible. */
function onWall(isOn) {
  document.documentElement.classList.toggle("wall", isOn);
  if (isOn) document.documentElement.requestFullscreen?.().catch(() => {});
  else if (document.fullscreenElement) document.exitFullscreen();
  dispatchEvent(new Event("resize"));
}

const palette = () =>
  openPalette(
    places.map(([name, words, symbol]) => [words, `#/${name}`, symbol]),
    [
      [
        "New schedule",
        () => {
          location.hash = "#/new";
        },
        "plus",
      ],
      ["Switch between dark and light", switchTheme, "sun"],
      ["Wall view, for a large screen (Esc to leave)", () => onWall(true), "timeline"],
    ],
  );

document.getElementById("frame").append(
  side,
  veil,
  h(
    "div",
    { class: "main" },
    h(
      "header",
      { class: "bar" },
      brand(),
      h(
        "button",
        { class: "finder", type: "button", onclick: palette, "aria-label": "Search or run an action, Ctrl K" },
        icon("search"),
        h("span", null, "Search or run…"),
        h("kbd", null, "Ctrl K"),
      ),
      connection,
      health,
      themeButton,
      link("New schedule", "#/new", { kind: "primary new-button", symbol: "plus" }),
    ),
    content,
  ),
  h(
    "nav",
    { class: "tabs-bottom", "aria-label": "Shortcuts" },
    [
      ["timeline", "Timeline", "timeline"],
      ["schedules", "Schedules", "list"],
      ["new", "New", "plus"],
      ["runs", "Ledger", "ledger"],
    ].map(([name, words, symbol]) => h("a", { href: `#/${name}`, data: { place: name } }, icon(symbol), words)),
    h("button", { type: "button", onclick: openMenu, "aria-controls": "menu" }, icon("menu"), "More"),
  ),
);

// --- connection and health -----------------------------------------------------------------------------------------------

const STATES = {
  connecting: ["connecting", "--dawn"],
  live: ["live", "--succeeded"],
  broken: ["not connected", "--failed"],
};
stream.watch((state) => {
  const [words, colour] = STATES[state];
  say(connection.lastChild, words);
  connection.style.setProperty("--tint", `var(${colour})`);
  connection.classList.toggle("live", state === "live");
  if (state === "live") lookAtHealth();
});

const lookAtHealth = throttled(async () => {
  let report;
  try {
    report = await get("/healthz");
  } catch (error) {
    report = error.body ?? {};
  }
  const level = report.problems?.length ? "bad" : (report.level ?? "ok");
  const running = report.running ?? 0;
  say(
    health.lastChild,
    level === "bad" ? "problem" : running ? `${running} running` : level === "warn" ? "warning" : "ok",
  );
  health.style.setProperty("--tint", `var(${{ ok: "--succeeded", warn: "--dawn", bad: "--failed" }[level]})`);
}, 5_000); // each request makes the daemon try a write
stream.hear((events) => {
  if (events.some((event) => event.stream !== "schedules")) lookAtHealth();
});

function tick() {
  say(clock, format({ hour: "2-digit", minute: "2-digit", second: "2-digit" }).format(Date.now()));
}

let isAsking = false;
let whyNotLoggedIn = null;
whenLoginNeeded(async () => {
  if (isAsking) return;
  isAsking = true;
  const how = "Run “wakeful open” for a link that logs you in, or paste the token: it is in the file “token” of the home folder.";
  for (;;) {
    const given = await askText("Log in", [whyNotLoggedIn, how].filter(Boolean).join(" "), "Token", {
      type: "password",
      yes: "Log in",
    });
    if (!given) break;
    try {
      await logIn({ token: given.trim() });
      whyNotLoggedIn = null;
      show();
      break;
    } catch (error) {
      whyNotLoggedIn = error.message;
    }
  }
  isAsking = false;
});

addEventListener("fullscreenchange", () => {
  if (!document.fullscreenElement) onWall(false);
});
addEventListener("hashchange", show);
addEventListener("keydown", (event) => {
  const isTyping = event.target.closest?.("input, textarea, select, dialog");
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    palette();
  } else if (event.key === "/" && !isTyping) {
    const field = content.querySelector("input[type=search]");
    event.preventDefault();
    if (field) field.focus();
    else palette();
  } else if (event.key === "n" && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey) {
    location.hash = "#/new";
  } else if (event.key === "Escape") {
    closeMenu();
    if (!isTyping) onWall(false);
  }
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  drawTheme();
  dispatchEvent(new Event("theme"));
});

whyNotLoggedIn = await logInFromAddress();
drawTheme();
tick();
setInterval(tick, 1_000);
keepTime();
stream.start();
keepBadges(
  stream,
  Object.fromEntries([...side.querySelectorAll("[data-place]")].map((one) => [one.dataset.place, one])),
);
show();
globalThis.wakeful = { stream }; // for debugging and the browser tests
