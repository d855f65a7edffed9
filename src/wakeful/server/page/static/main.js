// The frame: navigation, the current view, and the state of the clock.

import { Problem, logIn, logInFromAddress, whenLoginNeeded } from "./lib/api.js";
import { fill, h, say } from "./lib/dom.js";
import { Stream } from "./lib/stream.js";
import { format, keepTime, localZone } from "./lib/time.js";
import { Visit } from "./lib/view.js";
import { noteVisit } from "./lib/last-visit.js";
import { askText } from "./parts/dialogs.js";
import { icon } from "./parts/icons.js";
import { keepBadges } from "./parts/badges.js";
import { showKeys } from "./parts/keys.js";
import { openPalette } from "./parts/palette.js";
import { vitals } from "./parts/vitals.js";
import { button, link, loading, trouble } from "./parts/elements.js";

const PLACES = [
  [
    null,
    ["today", "Today", "sunrise"],
    ["timeline", "Timeline", "timeline"],
    ["schedules", "Schedules", "list"],
    ["runs", "Ledger", "ledger"],
  ],
  [
    "Agents",
    ["agents", "Agents", "agent"],
    ["heartbeat", "Heartbeat", "heart"],
    ["workflows", "Workflows", "flow"],
    ["slots", "Quota slots", "gauge"],
  ],
  [
    "Planning",
    ["forecast", "Forecast", "ahead"],
    ["cost", "Cost", "coin"],
    ["approvals", "Approvals", "check"],
    ["import", "Import", "import"],
  ],
  ["Messages", ["inbox", "Inbox", "inbox"], ["outbox", "Outbox", "out"], ["channels", "Channels", "channel"]],
  ["System", ["health", "Nodes and health", "health"], ["log", "Live log", "log"]],
];

const ROUTES = [
  [/^(?:today)?$/, "today"],
  [/^timeline$/, "timeline"],
  [/^schedules$/, "schedules"],
  [/^schedules\/([^/]+)$/, "schedule"],
  [/^schedules\/([^/]+)\/edit$/, "edit"],
  [/^new$/, "edit"],
  [/^runs$/, "runs"],
  [/^runs\/(\d+)$/, "run"],
  [/^agents$/, "agents"],
  [/^heartbeat$/, "heartbeat"],
  [/^workflows$/, "workflows"],
  [/^workflows\/([^/]+)$/, "workflow"],
  [/^workflows\/([^/]+)\/edit$/, "workflow-edit"],
  [/^new-workflow$/, "workflow-edit"],
  [/^slots$/, "slots"],
  [/^slots\/([^/]+)\/edit$/, "slot-edit"],
  [/^new-slot$/, "slot-edit"],
  [/^forecast$/, "forecast"],
  [/^cost$/, "cost"],
  [/^approvals$/, "approvals"],
  [/^import$/, "import"],
  [/^inbox$/, "inbox"],
  [/^outbox$/, "outbox"],
  [/^channels$/, "channels"],
  [/^health$/, "health"],
  [/^log$/, "log"],
];

const stream = new Stream();
const content = h("main", { class: "content", id: "main", tabindex: -1 });
const RETRY = 2_000; // milliseconds until a view that could not be loaded is loaded again
let visit = null;
let retry = null;

function parse() {
  const [path, asked] = location.hash.replace(/^#\/?/, "").split("?");
  for (const [pattern, name] of ROUTES) {
    const match = pattern.exec(path);
    if (match) return { name, path: path || name, params: match.slice(1).map(decodeURIComponent), query: new URLSearchParams(asked) };
  }
  return { name: "missing", path, params: [path], query: new URLSearchParams() };
}

let attempts = 0;

/** The module of a view. A browser may remember that a module could not be fetched, so a further attempt has its own
 * address. */
async function load(name) {
  try {
    return await import(`./views/${name}.js#${attempts}`);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    attempts += 1;
    throw new Problem(0, { error: "The daemon cannot be reached. Is it running? Start it with: wakeful up" });
  }
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
  clearTimeout(retry);
  let arrived = null; // what the view does once it is on the screen
  const waiting = setTimeout(() => mine.signal.aborted || fill(content, loading()), 150);
  try {
    const { default: view } = await load(place.name);
    if (mine.signal.aborted) return;
    const { title, element, ready } = await view(mine);
    if (mine.signal.aborted) return;
    clearTimeout(waiting);
    document.title = `${title} · Wakeful`;
    fill(content, element);
    arrived = ready;
    content.dataset.at = place.path;
    if (place.path === "new") content.querySelector("input")?.focus();
  } catch (error) {
    if (mine.signal.aborted) return;
    clearTimeout(waiting);
    const isPassing = error instanceof Problem && (error.status === 0 || error.status === 429 || error.status >= 500);
    fill(content, trouble(error, show, isPassing));
    if (isPassing) retry = setTimeout(show, RETRY);
    else if (!error.status) console.error(error);
  }
  if (!document.activeElement?.closest("#main > *, .side, .bar, dialog")) content.focus({ preventScroll: true });
  window.scrollTo(0, 0);
  arrived?.();
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

const themeButton = button("", switchTheme, { kind: "quiet theme", symbol: "moon", label: "Dark or light" });
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
  h(
    "div",
    { class: "side-foot" },
    clock,
    zone,
    button("Dark or light", switchTheme, { kind: "small quiet theme" }),
    button("Keys", showKeys, { kind: "small quiet", "aria-keyshortcuts": "?" }),
  ),
);
const veil = h("button", { class: "veil hidden", type: "button", "aria-label": "Close the menu", onclick: closeMenu });
const { elements: pills, notice } = vitals(stream);

function brand() {
  return h(
    "a",
    { class: "brand", href: "#/", "aria-label": "Wakeful: go to Today" },
    h("img", { src: "/page/icon.svg", alt: "" }),
    "Wakeful",
  );
}

const more = h("button", { type: "button", onclick: openMenu, "aria-controls": "menu", "aria-expanded": "false" }, icon("menu"), "More");

function openMenu() {
  side.classList.add("open");
  veil.classList.remove("hidden");
  more.setAttribute("aria-expanded", "true");
  side.querySelector("nav a").focus();
}

/** Close it; if the focus was in it, it goes back to where it was opened. */
function closeMenu() {
  if (!side.classList.contains("open")) return;
  const isInside = side.contains(document.activeElement);
  side.classList.remove("open");
  veil.classList.add("hidden");
  more.setAttribute("aria-expanded", "false");
  if (isInside) more.focus();
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
        go("new"),
        "plus",
      ],
      ["Switch between dark and light", switchTheme, "sun"],
      ["Show the keyboard shortcuts", showKeys, "question"],
      ["Wall view, for a large screen (Esc to leave)", () => onWall(true), "timeline"],
    ],
  );

document.getElementById("frame").replaceChildren(
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
      pills,
      themeButton,
      link("New schedule", "#/new", { kind: "primary new-button", symbol: "plus" }),
    ),
    notice,
    content,
  ),
  h(
    "nav",
    { class: "tabs-bottom", "aria-label": "Shortcuts" },
    [
      ["today", "Today", "sunrise"],
      ["schedules", "Schedules", "list"],
      ["new", "New", "plus"],
      ["runs", "Ledger", "ledger"],
    ].map(([name, words, symbol]) => h("a", { href: `#/${name}`, data: { place: name } }, icon(symbol), words)),
    more,
  ),
);

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

const go = (place) => () => {
  location.hash = `#/${place}`;
};
const KEYS = {
  "?": showKeys,
  d: go(""),
  t: go("timeline"),
  s: go("schedules"),
  l: go("runs"),
  n: () => (content.dataset.at === "new" ? content.querySelector("input")?.focus() : go("new")()),
};

addEventListener("fullscreenchange", () => {
  if (!document.fullscreenElement) onWall(false);
});
addEventListener("hashchange", show);
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the part after # names the view
  content.focus();
});
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
  } else if (KEYS[event.key] && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    KEYS[event.key]();
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
noteVisit();
setInterval(noteVisit, 60_000);
addEventListener("visibilitychange", noteVisit);
keepTime();
stream.start();
keepBadges(
  stream,
  Object.fromEntries([...side.querySelectorAll("[data-place]")].map((item) => [item.dataset.place, item])),
);
show();
globalThis.wakeful = { stream }; // for debugging and the browser tests
