// All schedules: search, filter and sort; state, next time, last runs; switch on and off, run now.

import { get, post, schedulePath } from "../lib/api.js";
import { fill, h, perFrame, say, settled, throttled } from "../lib/dom.js";
import { at } from "../lib/time.js";
import { attempt } from "../parts/dialogs.js";
import { icon } from "../parts/icons.js";
import { isOn, scheduleRow } from "../parts/schedule-row.js";
import { button, choices, empty, head, link } from "../parts/elements.js";

const PAGE = 100;
const HELD_MAX = 10_000; // more than this must be narrowed by a search, to bound the page's memory
const STATES = [
  ["", "All"],
  ["failing", "Failing"],
  ["late", "Late"],
  ["waiting", "Waiting"],
  ["running", "Running"],
  ["ok", "OK"],
  ["off", "Off"],
];
const STATUSES = ["running", "paused", "disabled", "invalid"]; // filtered by status; the others are healths
const WORST_FIRST = ["failing", "late", "waiting", "ok", "off"];
const RECENT = 12;

export default async function schedules(visit) {
  const list = {
    rows: [],
    bySlug: new Map(),
    next: null,
    state: visit.query.get("health") ?? visit.query.get("status") ?? "",
    q: visit.query.get("q") ?? "",
    sort: "slug",
    isDown: false,
  };
  let asked = 0;
  const scroll = h("div", { class: "list-scroll", tabindex: 0, role: "region", "aria-label": "Schedules" });
  const space = h("div", { class: "list-space", role: "list" });
  const counted = h("span", { class: "soft small", role: "status" });
  const none = h("div", { class: "hidden" });
  const shown = new Map(); // slug → its row in the page
  fill(scroll, space);

  const height = () => (matchMedia("(max-width: 860px)").matches ? 88 : 56);
  const draw = perFrame(() => {
    if (visit.signal.aborted) return;
    const row = height();
    space.style.setProperty("height", `${list.rows.length * row}px`);
    const first = Math.max(0, Math.floor(scroll.scrollTop / row) - 6);
    const last = Math.min(list.rows.length, Math.ceil((scroll.scrollTop + scroll.clientHeight) / row) + 6);
    const wanted = new Set(list.rows.slice(first, last).map(({ slug }) => slug));
    for (const [slug, item] of shown) {
      if (wanted.has(slug)) continue;
      item.element.remove();
      shown.delete(slug);
    }
    const restoreFocus = rowFocusKeeper(shown);
    for (let index = first; index < last; index += 1) {
      const schedule = list.rows[index];
      let item = shown.get(schedule.slug);
      if (!item || item.of !== schedule) {
        const element = scheduleRow(schedule, actions);
        item?.element.replaceWith(element);
        item = { of: schedule, element };
        shown.set(schedule.slug, item);
      }
      const { element } = item;
      // In the document they have the order of the screen, because Tab and screen readers follow it.
      const there = space.children[index - first] ?? null;
      if (there !== element) space.insertBefore(element, there);
      element.style.setProperty("top", `${index * row}px`);
      element.setAttribute("aria-posinset", index + 1);
      element.setAttribute("aria-setsize", list.next === null ? list.rows.length : -1);
      if (schedule.recent === undefined) renewed.add(schedule.slug); // read in bulk, without its last runs
    }
    restoreFocus();
    if (renewed.size) renew();
    if (list.next !== null && last + 40 > list.rows.length) more();
  });

  const page = (cursor, limit = PAGE) =>
    get(
      "/api/schedule",
      {
        [STATUSES.includes(list.state) ? "status" : "health"]: list.state,
        q: list.q,
        limit,
        cursor,
        recent: limit === PAGE ? RECENT : null,
      },
      visit.signal,
    );
  const take = (batch) => {
    for (const schedule of batch.schedules) {
      const known = list.bySlug.get(schedule.slug);
      if (known) continue;
      list.rows.push(schedule);
      list.bySlug.set(schedule.slug, schedule);
    }
    list.next = list.rows.length >= HELD_MAX ? null : batch.next;
    list.isCut = list.rows.length >= HELD_MAX && batch.next !== null;
  };
  const tellCount = () => {
    const isEmpty = list.rows.length === 0 && list.next === null;
    say(
      counted,
      isEmpty
        ? ""
        : `${list.rows.length.toLocaleString()}${list.next === null && !list.isCut ? "" : "+"} shown${list.isCut ? "; search to see others" : ""}`,
    );
    none.classList.toggle("hidden", !isEmpty);
    table.classList.toggle("hidden", isEmpty);
    if (isEmpty)
      fill(
        none,
        h(
          "div",
          { class: "panel" },
          list.q || list.state
            ? empty(
                "search",
                "No matches",
                "No schedule matches this state and this text.",
                {
                  action: button("Show all", () => {
                    list.q = list.state = search.value = "";
                    filter.choose("");
                    narrowed();
                  }),
                },
              )
            : empty(
                "sunrise",
                "No schedules yet",
                "A schedule says what should happen, and when. It can send a prompt to an agent, run a command, request a URL, call a Python function, or queue an event for the heartbeat.",
                {
                  command: 'wakeful add hello --every 1h --prompt "Say good morning"',
                  action: link("New schedule", "#/new", { kind: "primary", symbol: "plus" }),
                },
              ),
        ),
      );
  };
  const load = visit.loader(async () => {
    const mine = ++asked;
    const batch = await page(null);
    if (mine !== asked) return;
    Object.assign(list, { rows: [], next: null, bySlug: new Map() });
    take(batch);
    // A search may scan a thousand rows and match few: load more until there is something to show.
    for (let n = 0; n < 12 && list.rows.length < 30 && list.next !== null && mine === asked; n += 1)
      take(await page(list.next));
    if (list.sort !== "slug") await sort();
    scroll.scrollTop = 0;
    tellCount();
    draw();
  });
  let isLoading = false;
  const more = async () => {
    if (isLoading || list.next === null) return;
    isLoading = true;
    const mine = asked;
    try {
      const batch = await page(list.next);
      if (mine !== asked) return;
      take(batch);
      tellCount();
      draw();
    } catch (error) {
      visit.ignore(error);
    } finally {
      isLoading = false;
    }
  };

  // --- sorting: the daemon lists by name; any other order is computed on the page, up to a limit -----------------------

  const KEYS = {
    slug: (schedule) => schedule.slug,
    status: (schedule) => WORST_FIRST.indexOf(schedule.health),
    next: (schedule) => at(schedule.nextRun),
    last: (schedule) => (schedule.lastRun === null ? null : -at(schedule.lastRun)),
  };
  const sort = async () => {
    const mine = asked;
    while (list.next !== null && list.sort !== "slug" && mine === asked) take(await page(list.next, 1_000));
    const key = KEYS[list.sort];
    const way = list.isDown ? -1 : 1;
    list.rows.sort((a, b) => {
      const [x, y] = [key(a), key(b)];
      if ((x === null) !== (y === null)) return x === null ? 1 : -1; // "never" is last, in both directions
      return (x < y ? -1 : x > y ? 1 : a.slug < b.slug ? -1 : 1) * way;
    });
    tellCount();
    draw();
  };
  /** Say which column the list is sorted by, and in which direction. */
  const mark = (choice) => {
    const isChosen = choice.dataset.name === list.sort;
    choice.setAttribute("aria-pressed", String(isChosen));
    if (isChosen) choice.setAttribute("aria-description", list.isDown ? "in reverse order" : "in order");
    else choice.removeAttribute("aria-description");
  };
  const sortBy = (name, words) => {
    const choice = h(
      "button",
      {
        type: "button",
        data: { name },
        onclick: (event) => {
          list.isDown = list.sort === name && !list.isDown;
          list.sort = name;
          for (const choice of event.currentTarget.parentNode.querySelectorAll("button")) mark(choice);
          sort().catch(visit.ignore);
        },
      },
      words,
    );
    mark(choice);
    return choice;
  };

  // --- actions----------------------------------------------------------------------------------------------------------

  const renewed = new Set();
  const renew = throttled(
    async () => {
      const slugs = [...renewed].filter((slug) => shown.has(slug)).slice(0, 100);
      renewed.clear();
      if (!slugs.length) return;
      const answer = await get("/api/schedule", { slugs: slugs.join(","), recent: RECENT }, visit.signal).catch(
        visit.ignore,
      );
      if (!answer) return;
      const there = new Map(answer.schedules.map((schedule) => [schedule.slug, schedule]));
      list.rows = list.rows
        .filter((schedule) => !slugs.includes(schedule.slug) || there.has(schedule.slug))
        .map((schedule) => there.get(schedule.slug) ?? schedule);
      for (const slug of slugs) there.has(slug) ? list.bySlug.set(slug, there.get(slug)) : list.bySlug.delete(slug);
      draw();
    },
    700,
    visit.signal,
  );
  const changed = (slug) => {
    renewed.add(slug);
    renew();
  };
  const actions = {
    run: (schedule) =>
      attempt(() => post(schedulePath(schedule.slug, "/run")), `${schedule.slug}: run requested`).then(() => changed(schedule.slug)),
    toggle: (schedule) =>
      attempt(
        () => post(schedulePath(schedule.slug, isOn(schedule) ? "/pause" : "/resume")),
        `${schedule.slug} is ${isOn(schedule) ? "paused" : "on again"}`,
      ).then(() => changed(schedule.slug)),
  };
  const refill = visit.again(load, 3_000);
  visit.hear(["runs", "schedules"], (events) => {
    for (const event of events) {
      if (event.stream === "reset") refill();
      else if (event.slug && shown.has(event.slug)) {
        renewed.add(event.slug);
        renew();
      } else if (list.bySlug.has(event.slug)) {
        delete list.bySlug.get(event.slug).recent; // read again when it comes into view
      } else if (event.stream === "schedules" && event.what === "created" && list.rows.length < PAGE) refill();
    }
  });

  const narrowed = () => {
    visit.setQuery({ [STATUSES.includes(list.state) ? "status" : "health"]: list.state, q: list.q });
    asked += 1; // discard the load in progress
    load().catch(visit.ignore);
  };
  const search = h("input", {
    type: "search",
    placeholder: "Name, prompt, command, URL",
    "aria-label": "Search",
    value: list.q,
    oninput: settled(() => {
      list.q = search.value.trim();
      narrowed();
    }, 150),
  });
  const filter = choices("Status", STATES, list.state, (state) => {
    list.state = state;
    narrowed();
  });
  const table = h(
    "div",
    { class: "panel" },
    h(
      "div",
      { class: "list-head" },
      sortBy("status", "Status"),
      sortBy("slug", "Schedule"),
      h("span", { class: "c-when" }, "When"),
      sortBy("next", "Next"),
      sortBy("last", "Last"),
      h("span", { class: "c-strip" }, "Recent"),
      h("span", null, ""),
    ),
    scroll,
  );
  scroll.addEventListener("scroll", draw, { passive: true });
  new ResizeObserver(draw).observe(scroll);
  await load();
  visit.repair(() => {
    for (const slug of shown.keys()) renewed.add(slug);
    renew();
  });
  const element = h(
    "div",
    { class: "stack" },
    head("Schedules", null, counted),
    h("div", { class: "filters" }, h("div", { class: "search" }, icon("search"), search), filter),
    table,
    none,
  );
  return { title: "Schedules", element };
}

/** Note which control of which row has the focus. The result gives the focus back: a row that is redrawn or moved in the
 * document loses it. */
function rowFocusKeeper(shown) {
  const controls = (row) => [...row.querySelectorAll("a, button")];
  const focused = document.activeElement;
  const slug = focused?.closest(".list-row")?.dataset.slug;
  const item = shown.get(slug);
  const place = item ? controls(item.element).indexOf(focused) : -1;
  return () => {
    if (place < 0 || document.activeElement === focused) return;
    const row = shown.get(slug)?.element;
    if (row) controls(row)[place]?.focus({ preventScroll: true });
  };
}
