// Converts a definition between form texts and JSON. Validation is up to the daemon.

/** Split a command line into words: quotes keep spaces, a backslash escapes the next character. */
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

/** Join words into a command line that splits into them again. */
export const joinWords = (words) =>
  words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(" ");

/** Read-only fields of a schedule. */
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

/** The fields of each kind of timing: [field, label, hint or kind, example]. */
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
      ["every", "Interval", "e.g. 90s, 30m, 2h, 1d", "2h"],
      ["anchor", "Anchor", "optional: the starting point of the interval", "2026-01-30T09:00:00Z"],
    ],
  ],
  times: [
    "Times of day",
    [
      ["times", "Times", "separated by commas", "09:00, 18:00"],
      ["timezone", "Time zone", "zone"],
    ],
  ],
  once: [
    "Once",
    [
      ["at", "At", "with an offset, or together with a time zone", "2026-01-30T09:00"],
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
  manual: ["Only on request", []],
};

export const ACTIONS = {
  prompt: "Prompt an agent",
  command: "Run a command",
  http: "Send a request",
  call: "Call Python",
  event: "Queue an event",
};

/** Options with their labels and hints. */
export const OPTIONS = [
  ["deliver.channel", "Deliver the reply to", "a channel, or last; separate several with commas: phone, mail"],
  ["deliver.to", "Recipient", "optional"],
  ["timeout", "Timeout", "2h"],
  ["catchUp", "After an outage", ["once", "skip", "all"]],
  ["overlap", "If it is still running", ["skip", "queue"]],
  ["onCrash", "After a crash", ["retry", "unknown"]],
  ["retry.times", "Retries", "number"],
  ["retry.delay", "Between retries", "30m"],
  ["maxConsecutiveErrors", "Disable after this many consecutive errors", "number"],
  ["maxLateness", "Maximum delay", "optional: 10m"],
  ["activeHours.start", "Active from", "09:00"],
  ["activeHours.end", "Active until", "22:00"],
  ["stagger", "Stagger", "0s"],
  ["success", "Success is", ["", "accepted", "started", "finished"]],
  ["slot", "Wait for quota of slot", "optional"],
  ["lane", "Lane", "optional: one at a time"],
];
const NUMBERS = new Set(["retry.times", "maxConsecutiveErrors", "catchUpMax"]);

/** The definition for the form's texts. Throws an error with `field` for invalid JSON. */
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

/** The `deliver` field: as stored if the text was not changed, else one recipient or several. */
function deliverFrom(written, kept) {
  if (kept && written.channel === deliverText(kept)) return kept;
  const named = written.channel.split(",").map(trimmed).filter(Boolean);
  if (named.length < 2 && !written.channel.includes(ARROW)) return written;
  return named.map((text) => {
    const [channel, to] = text.split(ARROW).map(trimmed);
    return to ? { channel, to } : { channel };
  });
}

/** Several recipients in one line. */
export const deliverText = (list) =>
  list.map((one) => [one.channel, one.to].filter(Boolean).join(ARROW)).join(", ");

/** The form's texts for a definition. */
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
  values.kept = Object.fromEntries(Object.entries(one).filter(([name]) => !shown.has(name))); // fields without a control
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
