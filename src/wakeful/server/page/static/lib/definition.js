// A definition between the form and JSON. The daemon decides what is right; here only texts become values and back.

/** A command line as its words: quotes keep spaces, a backslash keeps the next character. */
export function splitWords(line) {
  const words = [];
  let word = null;
  let quote = null;
  for (let index = 0; index < line.length; index += 1) {
    const char = line[index];
    if (quote === "'" ? char === "'" : char === '"' && quote === '"') quote = null;
    else if (char === "\\" && quote !== "'" && index + 1 < line.length) word = (word ?? "") + line[(index += 1)];
    else if (quote) word += char;
    else if (char === "'" || char === '"') [quote, word] = [char, word ?? ""];
    else if (/\s/.test(char)) {
      if (word !== null) words.push(word);
      word = null;
    } else word = (word ?? "") + char;
  }
  if (word !== null) words.push(word);
  return words;
}

/** Words as a command line that splits into them again. */
export const joinWords = (words) =>
  words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(" ");

/** What a schedule reads back with, and nobody writes. */
export const READ_BACK = new Set([
  "slug",
  "status",
  "statusReason",
  "lastRun",
  "lastResult",
  "lastError",
  "sessionId",
  "nextRun",
  "consecutiveErrors",
  "createdAt",
  "updatedAt",
  "version",
  "description",
  "next",
  "recent",
]);

const trimmed = (text) => text.trim();
const parsed = (text) => (text.trim() ? JSON.parse(text) : undefined);

/** What each kind of timing asks for: [field, label, hint or kind, example]. */
export const TIMINGS = {
  cron: [
    "Cron",
    [
      ["expression", "Expression", "minute, hour, day of the month, month, weekday", "0 9 * * 1-5"],
      ["timezone", "Time zone", "zone"],
    ],
  ],
  every: [
    "Every",
    [
      ["every", "Interval", "as in 90s, 30m, 2h, 1d", "2h"],
      ["anchor", "Anchor", "may be left out; a time that lies on its grid", "2026-01-30T09:00:00Z"],
    ],
  ],
  times: [
    "Times of day",
    [
      ["times", "Times", "with commas between", "09:00, 18:00"],
      ["timezone", "Time zone", "zone"],
    ],
  ],
  once: [
    "Once",
    [
      ["at", "At", "with an offset, or with the zone beside it", "2026-01-30T09:00"],
      ["timezone", "Time zone", "zone"],
    ],
  ],
  afterReset: [
    "After a quota reset",
    [
      ["slot", "Slot", "the name of a quota slot", "main"],
      ["offsetMinutes", "Minutes after", "how long after the reset", "1"],
    ],
  ],
  manual: ["Only when asked", []],
};

export const ACTIONS = {
  prompt: "Ask an agent",
  command: "Run a command",
  http: "Send a request",
  call: "Call Python",
  event: "Raise an event",
};

/** Options with their names, and the words that say what they do. */
export const OPTIONS = [
  ["deliver.channel", "Deliver the reply to", "a channel, or last; several with commas: phone, mail"],
  ["deliver.to", "Deliver to whom", "optional"],
  ["timeout", "Timeout", "2h"],
  ["catchUp", "After an outage", ["once", "skip", "all"]],
  ["overlap", "If it still runs", ["skip", "queue"]],
  ["onCrash", "After a crash", ["retry", "unknown"]],
  ["retry.times", "Retries", "number"],
  ["retry.delay", "Between retries", "30m"],
  ["maxConsecutiveErrors", "Off after so many errors in a row", "number"],
  ["maxLateness", "Not later than", "optional: 10m"],
  ["activeHours.start", "Active from", "09:00"],
  ["activeHours.end", "Active until", "22:00"],
  ["stagger", "Stagger", "0s"],
  ["success", "Success is", ["", "accepted", "started", "finished"]],
  ["slot", "Waits for quota of slot", "optional"],
  ["lane", "Lane", "optional: one at a time"],
];
const NUMBERS = new Set(["retry.times", "maxConsecutiveErrors", "catchUpMax"]);

/** The definition that the form's texts say. Throws an error with `field` for JSON that is none. */
export function fromForm(values) {
  const out = { enabled: values.enabled, schedule: { type: values.timing } };
  for (const [name] of TIMINGS[values.timing][1]) {
    const text = trimmed(values[`schedule.${name}`] ?? "");
    if (text === "") continue;
    out.schedule[name] =
      name === "times" ? text.split(/[\s,]+/).filter(Boolean) : name === "offsetMinutes" ? number(text) : text;
  }
  const kind = values.action;
  if (kind === "prompt") {
    out.prompt = values.prompt;
    if (trimmed(values.agent)) out.agent = trimmed(values.agent);
    out.sessionConfig = { ...(values.sessionConfig ?? {}), persistSession: values.persist };
  } else if (kind === "command")
    out.command = {
      ...(values.keptCommand ?? {}),
      argv: splitWords(values["command.argv"]),
      ...(trimmed(values["command.cwd"]) ? { cwd: trimmed(values["command.cwd"]) } : {}),
    };
  else if (kind === "http") {
    out.http = { ...(values.keptHttp ?? {}), method: values["http.method"], url: trimmed(values["http.url"]) };
    delete out.http.body;
    const body = json(values["http.body"], "http.body");
    if (body !== undefined) out.http.body = body;
  } else if (kind === "call") {
    out.call = { ...(values.keptCall ?? {}), target: trimmed(values["call.target"]) };
    const args = json(values["call.args"], "call.args");
    if (args !== undefined) out.call.args = args;
  } else out.event = { ...(values.keptEvent ?? {}), text: values["event.text"] };
  for (const [name] of OPTIONS) {
    const text = trimmed(String(values[name] ?? ""));
    if (text !== "") put(out, name, NUMBERS.has(name) ? number(text) : text);
  }
  if (out.deliver?.channel) out.deliver = deliverFrom(out.deliver, values.keptDeliver);
  if (values.activeZone && out.activeHours) out.activeHours.timezone = values.activeZone;
  if (out.schedule.type === "once" && out.schedule.at && /(Z|[+-]\d\d:?\d\d)$/.test(out.schedule.at))
    delete out.schedule.timezone;
  return { ...(values.kept ?? {}), ...out };
}

function json(text, field) {
  try {
    return parsed(text ?? "");
  } catch (error) {
    throw Object.assign(new Error(`is not JSON: ${error.message}`), { field });
  }
}

const number = (text) => (Number.isFinite(Number(text)) ? Number(text) : text);

function put(out, name, value) {
  const [first, second] = name.split(".");
  if (second) out[first] = { ...out[first], [second]: value };
  else out[first] = value;
}

const ARROW = " → ";

/** What the form's text about delivery says: as it was stored if it was not changed, else one addressee or several. */
function deliverFrom(written, kept) {
  if (kept && written.channel === deliverText(kept)) return kept;
  const named = written.channel.split(",").map(trimmed).filter(Boolean);
  if (named.length < 2 && !written.channel.includes(ARROW)) return written;
  return named.map((text) => {
    const [channel, to] = text.split(ARROW).map(trimmed);
    return to ? { channel, to } : { channel };
  });
}

/** Several addressees in one line. */
export const deliverText = (list) =>
  list.map((one) => [one.channel, one.to].filter(Boolean).join(ARROW)).join(", ");

/** The texts of the form that say this definition. */
export function toForm(given) {
  const one = given ?? {};
  const timing = one.schedule ?? { type: "cron" };
  const type = timing.type === "interval" ? "every" : timing.type === "at" ? "once" : timing.type;
  const values = {
    timing: type,
    enabled: one.enabled ?? true,
    action: Object.keys(ACTIONS).find((kind) => one[kind] != null) ?? "prompt",
    activeZone: one.activeHours?.timezone,
  };
  const shown = new Set([
    "schedule",
    "enabled",
    "agent",
    "sessionConfig",
    ...Object.keys(ACTIONS),
    ...OPTIONS.map(([name]) => name.split(".")[0]),
  ]);
  values.kept = Object.fromEntries(Object.entries(one).filter(([name]) => !shown.has(name))); // what no field shows
  for (const [name, value] of Object.entries(timing))
    if (name !== "type") values[`schedule.${name}`] = Array.isArray(value) ? value.join(", ") : String(value ?? "");
  if (timing.type === "interval") values["schedule.every"] = `${timing.intervalMinutes}m`;
  values.prompt = one.prompt ?? "";
  values.agent = one.agent ?? "";
  values.sessionConfig = one.sessionConfig ?? {};
  values.persist = one.sessionConfig?.persistSession ?? true;
  values["command.argv"] = one.command ? joinWords(one.command.argv ?? []) : "";
  values["command.cwd"] = one.command?.cwd ?? "";
  values.keptCommand = one.command;
  values["http.url"] = one.http?.url ?? "";
  values["http.method"] = one.http?.method ?? "POST";
  values["http.body"] = one.http?.body == null ? "" : JSON.stringify(one.http.body, null, 2);
  values.keptHttp = one.http;
  values["call.target"] = one.call?.target ?? "";
  values["call.args"] =
    one.call?.args && Object.keys(one.call.args).length ? JSON.stringify(one.call.args, null, 2) : "";
  values.keptCall = one.call;
  values["event.text"] = one.event?.text ?? "";
  values.keptEvent = one.event;
  for (const [name] of OPTIONS) {
    const [first, second] = name.split(".");
    values[name] = String((second ? one[first]?.[second] : one[first]) ?? "");
  }
  if (Array.isArray(one.deliver)) {
    values.keptDeliver = one.deliver;
    values["deliver.channel"] = deliverText(one.deliver);
  }
  return values;
}
