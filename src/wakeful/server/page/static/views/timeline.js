// All schedules on one time axis: past runs, now, and planned times.

import { get, has } from "../lib/api.js";
import { fill, h, perFrame, quoted, say, settled, throttled } from "../lib/dom.js";
import { windowOf } from "../lib/slots.js";
import { outcomeWords, placeOf } from "../lib/text.js";
import { SPANS, USUAL, spanFor } from "../lib/span.js";
import { DAY, MINUTE, at, clock, when, zoneChanges } from "../lib/time.js";
import { ROWS_MAX, TimelineData, isOther, iso } from "../lib/timeline-data.js";
import { KINDS, SHOWN, rowName } from "../lib/timeline-others.js";
import { ROW, Scale, colours, drawAxis, drawField, drawNow, drawRow, fit } from "../parts/axis.js";
import { markWords, rowWords } from "../parts/axis-words.js";
import { icon } from "../parts/icons.js";
import { chip, mark } from "../parts/marks.js";
import { stateOf } from "../parts/schedule-row.js";
import { body, button, choices, empty, head, link, panel } from "../parts/elements.js";

const FEW = 4; // rows that leave room for a list below
const SOON = 6;
const SHORTEST = 5 * MINUTE;
const LONGEST = 60 * DAY;
const LEGEND = [
  "succeeded",
  "failed",
  "timedOut",
  "unconfirmed",
  "unknown",
  "cancelled",
  "skipped",
  "missed",
  "running",
  "waiting",
  "planned",
];

export default async function timeline(visit) {
  const kinds = new Set((visit.query.get("show") ?? SHOWN.join(",")).split(","));
  const data = new TimelineData(visit.signal, kinds);
  const asked = Object.hasOwn(SPANS, visit.query.get("span")) ? visit.query.get("span") : null;
  let suits = asked ?? USUAL; // the span that `Now` returns to
  let span = SPANS[suits];
  let [from, until] = [Date.now() - span[0], Date.now() + span[1]];
  let isFollowing = true;
  let colour = colours();
  let slots = [];
  let changes = [];
  let drawn = [];
  let pointed = null;

  const axis = h("canvas", { class: "tl-canvas", "aria-hidden": true });
  const field = h("canvas", {
    class: "tl-canvas",
    tabindex: 0,
    role: "img",
    "aria-label":
      "Time axis. Plus and minus zoom, left and right move, 0 goes back to now; up and down choose a row, comma and full stop a mark in it, Enter opens it.",
  });
  const names = h("ol", { class: "tl-rows" });
  const layer = h("div", { class: "tl-layer" }, field);
  const scroll = h("div", { class: "tl-scroll" }, layer, names);
  const corner = h("div", { class: "tl-corner" });
  const tip = h("div", { class: "tl-tip hidden", role: "tooltip", "aria-live": "polite" });
  const windowsMean = h("span", { class: "chip hidden" }, h("i", { class: "swatch window" }), "quota window");
  const changesMean = h("span", { class: "chip hidden" }, h("i", { class: "swatch change" }), "clocks change");
  const delaysMean = h("span", { class: "chip" }, h("i", { class: "swatch delay" }), "started late");
  const excludedMean = h("span", { class: "chip hidden" }, h("i", { class: "swatch excluded" }), "excluded day");
  const legend = LEGEND.map((outcome) => h("span", { class: "chip", data: { means: outcome } }, mark(outcome), outcomeWords(outcome)));
  const chart = h(
    "div",
    { class: "panel timeline" },
    h("div", { class: "tl-axis" }, corner, axis),
    scroll,
    tip,
    h(
      "div",
      { class: "tl-foot", "aria-label": "Legend" },
      legend,
      delaysMean,
      windowsMean,
      changesMean,
      excludedMean,
    ),
  );
  const lists = h("div", { class: "columns hidden" });
  const soon = h("nav", { class: "soon", "aria-label": "Next" });
  const none = h(
    "div",
    { class: "panel hidden" },
    empty(
      "sunrise",
      "Nothing is planned yet",
      "A schedule says what should happen and when: send a prompt to an agent, run a command, request a URL. Its planned times and past runs show up here.",
      {
        command:
          'wakeful add standup --cron "0 9 * * 1-5" --prompt "Summarise yesterday\'s commits"\nwakeful add backup --every 6h --command "make backup"',
        action: link("New schedule", "#/new", { kind: "primary", symbol: "plus" }),
      },
    ),
  );

  const width = () => Math.max(80, chart.clientWidth - names.offsetWidth);
  const scaleNow = () => new Scale(from, until, width());

  const draw = perFrame(() => {
    if (visit.signal.aborted || !chart.isConnected) return;
    const now = Date.now();
    if (isFollowing) [from, until] = [now - span[0], now + span[1]];
    if (until > data.window[1] && data.window[1]) refill(); // the axis moved beyond the loaded range
    const scale = scaleNow();
    const left = names.offsetWidth;
    const extras = {
      changes,
      windows: slots.map(windowOf).filter((window) => window && window.until > from && window.from < until),
    };
    excludedMean.classList.toggle("hidden", !data.rows.some((row) => row.excluded.some((days) => days.until > from && days.from < until)));
    windowsMean.classList.toggle("hidden", extras.windows.length === 0);
    changesMean.classList.toggle("hidden", changes.length === 0);
    axis.style.setProperty("left", `${left}px`);
    field.style.setProperty("left", `${left}px`);
    drawAxis(fit(axis, scale.width, 46), scale, colour, now, extras);
    const height = scroll.clientHeight;
    const pen = fit(field, scale.width, height);
    drawField(pen, scale, colour, now, height, extras);
    drawNow(pen, scale, colour, now, height);
    const first = Math.floor(scroll.scrollTop / ROW);
    drawn = [];
    for (let index = first; index < data.rows.length && (index - first - 1) * ROW < height; index += 1) {
      const top = index * ROW - scroll.scrollTop;
      drawn.push({
        row: data.rows[index],
        top,
        cells: drawRow(pen, scale, colour, data.rows[index], top, now, pointed?.slug === data.rows[index].slug),
      });
    }
  });

  const showNames = () => {
    const isEmpty = data.rows.length === 0 && !data.q && data.next === null;
    scroll.style.setProperty("--rows", String(Math.max(2, data.rows.length)));
    const seen = new Set(data.rows.flatMap((row) => row.runs.map((run) => run.outcome)));
    for (const chip of legend) chip.classList.toggle("hidden", !seen.has(chip.dataset.means) && chip.dataset.means !== "planned");
    delaysMean.classList.toggle("hidden", !data.rows.some((row) => row.runs.some(isLate)));
    lists.classList.toggle("hidden", isEmpty || data.rows.length > FEW);
    if (data.rows.length <= FEW) fill(lists, fewRows(data.rows));
    none.classList.toggle("hidden", !isEmpty);
    chart.classList.toggle("hidden", isEmpty);
    const count = data.rows.filter((row) => !isOther(row.slug)).length;
    say(corner, `${count.toLocaleString()}${data.next === null ? "" : "+"} ${count === 1 ? "schedule" : "schedules"}`);
    fill(
      names,
      data.rows.map((row) =>
        h(
          "li",
          null,
          h(
            "a",
            {
              href: placeOf(row.slug),
              class: row.status === "paused" || row.status === "disabled" || row.status === "done" ? "off" : "",
            },
            mark(stateOf(row)[0]),
            quoted(rowName(row.slug), { class: "cut", title: row.slug }),
            h("span", { class: "unseen" }, rowWords(row)),
          ),
        ),
      ),
      data.isFull && data.next !== null
        ? h("li", { class: "faint small" }, ` the first ${ROWS_MAX.toLocaleString()}; search to see others`)
        : null,
    );
    draw();
  };

  let q = data.q;
  let isSuited = asked !== null;
  const load = visit.loader(async () => {
    const pad = (until - from) / 2;
    if (!(await data.load([from - pad, until + pad], q))) return;
    if (!isSuited) {
      isSuited = true;
      suits = spanFor(data.rows, Date.now());
      if (suits !== USUAL) back(); // which loads again; until then, what is known is shown
    }
    const zones = new Set(
      data.rows
        .map((row) => row.timezone)
        .filter(Boolean)
        .slice(0, 500),
    );
    changes = [...zones]
      .slice(0, 12)
      .flatMap((zone) => zoneChanges(zone, from - pad, until + pad))
      .slice(0, 40);
    showNames();
  });
  const reload = settled(() => load().catch(visit.ignore), 160);
  const loadSoon = async () => {
    const isWhole = data.next === null && !data.q;
    const fires = isWhole
      ? data.rows.map((row) => ({ slug: row.slug, at: row.planned[0] ?? at(row.nextRun) })).filter((fire) => fire.at)
      : (await get("/api/upcoming", { limit: 300, until: iso(Date.now() + 7 * DAY) }, visit.signal)).upcoming.map(
          (fire) => ({ slug: fire.slug, at: at(fire.dueAt) }),
        );
    const ordered = fires.sort((a, b) => b.at - a.at).map((fire) => [fire.slug, fire]); // the first of each comes last
    const firsts = [...new Map(ordered).values()].sort((a, b) => a.at - b.at).slice(0, SOON);
    soon.classList.toggle("hidden", firsts.length === 0);
    fill(
      soon,
      firsts.map((fire) =>
        h(
          "a",
          { href: placeOf(fire.slug) },
          when(iso(fire.at)),
          quoted(rowName(fire.slug), { class: "cut" }),
          h("span", { class: "small soft cut" }, clock(fire.at)),
        ),
      ),
    );
  };

  // --- moving -----------------------------------------------------------------------------------------------------------

  const move = (nextFrom, nextUntil) => {
    const length = Math.min(LONGEST, Math.max(SHORTEST, nextUntil - nextFrom));
    const centre = (nextFrom + nextUntil) / 2;
    [from, until] = [centre - length / 2, centre + length / 2];
    isFollowing = false;
    toNow.classList.remove("hidden");
    if (from < data.window[0] || until > data.window[1] || data.window[1] - data.window[0] > 4 * length) reload();
    spans.choose(null);
    draw();
  };
  const zoom = (factor, centre = (from + until) / 2) =>
    move(centre - (centre - from) * factor, centre + (until - centre) * factor);
  const pan = (share) => move(from + (until - from) * share, until + (until - from) * share);
  const back = (name = suits) => {
    span = SPANS[name];
    isFollowing = true;
    toNow.classList.add("hidden");
    [from, until] = [Date.now() - span[0], Date.now() + span[1]];
    spans.choose(name);
    reload();
    draw();
  };
  field.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey && !event.shiftKey && Math.abs(event.deltaX) < Math.abs(event.deltaY)) return;
      event.preventDefault();
      if (event.ctrlKey) zoom(Math.exp(event.deltaY / 240), scaleNow().time(event.offsetX));
      else pan((event.deltaX || event.deltaY) / width());
    },
    { passive: false },
  );
  field.addEventListener("dblclick", (event) => zoom(0.5, scaleNow().time(event.offsetX)));
  field.addEventListener("keydown", (event) => {
    const act = {
      "+": () => zoom(0.6),
      "=": () => zoom(0.6),
      "-": () => zoom(1.6),
      ArrowLeft: () => pan(-0.15),
      ArrowRight: () => pan(0.15),
      ArrowUp: () => choose(-1, 0),
      ArrowDown: () => choose(1, 0),
      ",": () => choose(0, -1),
      ".": () => choose(0, 1),
      Enter: () => chosen && follow(chosen.row, chosen.cell),
      0: () => back(),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
  let held = null;
  field.addEventListener("pointerdown", (event) => {
    held = { x: event.clientX, from, until, isMoved: false };
  });
  addEventListener(
    "pointerup",
    () => {
      field.classList.remove("dragging");
      setTimeout(() => {
        held = null;
      });
    },
    { signal: visit.signal },
  );
  field.addEventListener("pointermove", (event) => {
    if (held && Math.abs(event.clientX - held.x) > 4) {
      held.isMoved = true;
      field.classList.add("dragging");
      const by = (held.x - event.clientX) * ((held.until - held.from) / width());
      move(held.from + by, held.until + by);
    } else if (!held) point(event);
  });
  field.addEventListener("blur", () => {
    chosen = null;
    tip.classList.add("hidden");
  });
  field.addEventListener("pointerleave", () => {
    pointed = null;
    tip.classList.add("hidden");
    draw();
  });
  field.addEventListener("click", (event) => {
    if (held?.isMoved) return;
    const hit = under(event);
    if (hit?.cell) follow(hit.row, hit.cell);
  });

  /** Open the run or schedule behind a mark. */
  const follow = (row, cell) => {
    const isRun = !cell.isPlanned && !row.slug.startsWith("delivery:");
    if (isRun) location.hash = `#/runs/${cell.what.runId}`;
    else if (isOther(row.slug)) location.hash = placeOf(row.slug);
    else location.hash = `#/schedules/${row.slug}?at=${encodeURIComponent(iso(cell.what.plannedAt))}`;
  };

  /** Choose a row or a mark by keyboard: the next one, or the last that is drawn. */
  let chosen = null;
  const choose = (rows, marks) => {
    const lines = drawn.filter(({ cells }) => cells.length);
    if (!lines.length) return;
    const was = lines.findIndex(({ row }) => row.slug === chosen?.row.slug);
    const line = lines[Math.min(lines.length - 1, Math.max(0, was < 0 ? 0 : was + rows))];
    const near = line.cells.findLastIndex((cell) => cell.ms <= (chosen?.cell.ms ?? Date.now()));
    const cell = line.cells[Math.min(line.cells.length - 1, Math.max(0, near + (was < 0 ? 0 : marks)))];
    chosen = { row: line.row, cell };
    pointed = line.row;
    showTip({ ...line, cell });
    draw();
  };

  // --- pointing ---------------------------------------------------------------------------------------------------------

  const under = (event) => {
    const line = drawn.find(({ top }) => event.offsetY >= top && event.offsetY < top + ROW);
    if (!line) return null;
    const cell = line.cells.reduce(
      (best, cell) => (Math.abs(cell.x - event.offsetX) < Math.abs((best?.x ?? Infinity) - event.offsetX) ? cell : best),
      null,
    );
    return { row: line.row, top: line.top, cell: cell && Math.abs(cell.x - event.offsetX) < 12 ? cell : null };
  };
  const point = (event) => {
    const hit = under(event);
    if (pointed !== hit?.row) {
      pointed = hit?.row ?? null;
      draw();
    }
    field.style.setProperty("cursor", hit?.cell ? "pointer" : "crosshair");
    showTip(hit);
  };
  const showTip = (hit) => {
    tip.classList.toggle("hidden", !hit?.cell);
    if (!hit?.cell) return;
    fill(tip, markWords(hit.row, hit.cell));
    const x = names.offsetWidth + hit.cell.x;
    const y = scroll.offsetTop + hit.top + ROW + 4;
    tip.style.setProperty("left", `${Math.max(8, Math.min(x - 40, chart.clientWidth - tip.offsetWidth - 8))}px`);
    tip.style.setProperty("top", `${y + tip.offsetHeight > chart.clientHeight ? y - ROW - tip.offsetHeight - 8 : y}px`);
  };

  // --- the head, and live updates -----------------------------------------------------------------------------------------

  const toNow = button("Now", () => back(), { kind: "hidden" });
  const spans = choices(
    "Span",
    [
      ["15m", "15 min"],
      ["3h", "3 hours"],
      ["24h", "24 hours"],
      ["7d", "7 days"],
    ],
    suits,
    back,
  );
  const shows = h(
    "details",
    { class: "menu" },
    h("summary", { class: "button" }, "Rows"),
    h(
      "div",
      { class: "ticks" },
      KINDS.map(([kind, words]) =>
        h(
          "label",
          { class: "row check" },
          h("input", {
            type: "checkbox",
            checked: kinds.has(kind),
            onchange: (event) => {
              event.target.checked ? kinds.add(kind) : kinds.delete(kind);
              history.replaceState(null, "", `#/timeline?show=${[...kinds].join(",")}${asked ? `&span=${asked}` : ""}`);
              load().catch(visit.ignore);
            },
          }),
          words,
        ),
      ),
    ),
  );
  const search = h("input", {
    type: "search",
    placeholder: "Find schedules",
    "aria-label": "Find schedules",
    oninput: settled(() => {
      q = search.value.trim();
      load().catch(visit.ignore);
    }, 180),
  });
  const element = h(
    "div",
    { class: "stack" },
    head(
      "Timeline",
      null,
      h("div", { class: "search" }, icon("search"), search),
      shows,
      spans,
      button("", () => zoom(0.6), { symbol: "plus", label: "Zoom in" }),
      button("", () => zoom(1.6), { symbol: "minus", label: "Zoom out" }),
      toNow,
    ),
    soon,
    chart,
    lists,
    none,
  );

  const renewed = new Set();
  const renew = throttled(
    () => {
      const slugs = [...renewed];
      renewed.clear();
      data.renew(slugs).then(showNames).catch(visit.ignore);
    },
    1_000,
    visit.signal,
  );
  const refill = visit.again(load, 2_000);
  const othersAgain = visit.again(() => data.renewOthers().then(showNames), 2_000);
  const slotsAgain = throttled(() => loadSlots().catch(visit.ignore), 2_000, visit.signal);
  const soonAgain = throttled(() => loadSoon().catch(visit.ignore), 2_000, visit.signal);
  visit.hear(["runs", "schedules", "slots"], (events) => {
    for (const event of events) {
      if (event.stream === "reset") refill();
      else if (event.stream === "slots") slotsAgain();
      else if (event.slug?.startsWith("workflow:")) othersAgain();
      else if (event.stream === "schedules")
        data.bySlug.has(event.slug) ? (renewed.add(event.slug), renew()) : refill();
      else if (data.hear(event)?.planned.length === 0 && event.what === "claimed") (renewed.add(event.slug), renew());
    }
    soonAgain();
    draw();
  });
  visit.every(1_000, draw);
  visit.repair(() => {
    for (const { row } of drawn) renewed.add(row.slug);
    renew();
    othersAgain();
  });
  scroll.addEventListener(
    "scroll",
    () => {
      draw();
      if (scroll.scrollTop + 2 * scroll.clientHeight > names.offsetHeight)
        data
          .more()
          .then((is) => is && showNames())
          .catch(visit.ignore);
    },
    { passive: true },
  );
  new ResizeObserver(draw).observe(chart);
  addEventListener(
    "theme",
    () => {
      colour = colours();
      draw();
    },
    { signal: visit.signal },
  );
  const loadSlots = async () => {
    if (await has("/api/slots")) slots = (await get("/api/slots", {}, visit.signal)).slots;
    draw();
  };
  loadSlots().catch(visit.ignore);
  await load();
  await loadSoon();
  return { title: "Timeline", element };
}

const isLate = (run) => run.startedAt !== null && run.startedAt - run.plannedAt >= MINUTE;

/** With few rows there is room for their last runs and next times. */
function fewRows(rows) {
  const runs = rows.flatMap((row) => row.runs.map((run) => ({ row, run })));
  const latest = runs.sort((a, b) => (b.run.startedAt ?? b.run.plannedAt) - (a.run.startedAt ?? a.run.plannedAt)).slice(0, 10);
  const ahead = rows.flatMap((row) => row.planned.map((time) => ({ row, time })));
  const soonest = ahead.sort((a, b) => a.time - b.time).slice(0, 10);
  const line = (row, time, shown) => h("li", null, h("a", { href: placeOf(row.slug) }, quoted(rowName(row.slug))), shown, when(iso(time)));
  return [
    panel(
      "Last runs",
      body(
        latest.length
          ? h("ol", { class: "times" }, latest.map(({ row, run }) => line(row, run.startedAt ?? run.plannedAt, chip(run.outcome))))
          : h("p", { class: "soft" }, "None yet."),
      ),
    ),
    panel(
      "Next times",
      body(
        soonest.length
          ? h("ol", { class: "times" }, soonest.map(({ row, time }) => line(row, time, h("span", { class: "soft" }, clock(time)))))
          : h("p", { class: "soft" }, "No planned times."),
      ),
    ),
  ];
}
