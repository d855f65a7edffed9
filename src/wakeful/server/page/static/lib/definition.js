// Converts a definition between form text and JSON, using the form the daemon describes. The daemon validates it.

import { get } from "./api.js";

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

let form = null;

/** The form of a schedule: its timings, actions and options, each with controls. Fetched once. */
export const scheduleForm = () =>
  (form ??= get("/api/forms/schedule").catch((error) => {
    form = null;
    throw error;
  }));

/** The part of a schedule that users write, without its state. */
export const written = ({ fields }, schedule) =>
  Object.fromEntries(Object.entries(schedule).filter(([name]) => name !== "slug" && fields.includes(name)));

const ARROW = " → ";

/** Several recipients in one line. */
export const deliverText = (list) => list.map((recipient) => [recipient.channel, recipient.to].filter(Boolean).join(ARROW)).join(", ");

/** For each control: how its text becomes a value, and how a value is shown. Others are plain text. */
const CONTROLS = {
  area: [(text) => text, String],
  number: [(text) => (Number.isFinite(Number(text)) ? Number(text) : text), String],
  flag: [(text) => text === "true", String],
  list: [(text) => text.split(/[\s,]+/).filter(Boolean), (list) => [list].flat().join(", ")], // one value may be written without a list
  words: [splitWords, joinWords],
  json: [JSON.parse, (value) => JSON.stringify(value, null, 2)],
  session: [(given) => given, (given) => given],
  secret: [(text) => (text.startsWith("{") ? JSON.parse(text) : text), (value) => (typeof value === "string" ? value : JSON.stringify(value))],
};

/** The value that a control's text stands for; throws an error with `field` for invalid JSON. */
export function valueOf({ name, control }, text) {
  try {
    return (CONTROLS[control]?.[0] ?? String)(text);
  } catch (error) {
    throw Object.assign(new Error(`is not JSON: ${error.message}`), { field: name });
  }
}

/** The text of a control for a value. */
export const textOf = ({ control }, value) => (CONTROLS[control]?.[1] ?? String)(value);

/** The controls of the chosen timing and action, and the options. */
export const controlsOf = (form, values) => [
  ...form.timings.find((kind) => kind.name === values.timing).fields,
  ...form.actions.find((kind) => kind.name === values.action).fields,
  ...form.options,
];

/** The definition for the form's text. Throws an error with `field` for invalid JSON. */
export function fromForm(form, values) {
  const out = { schedule: { type: values.timing } };
  for (const { name, control } of controlsOf(form, values)) {
    const given = control === "area" || control === "session" ? values[name] : String(values[name] ?? "").trim();
    if (given === undefined || given === "") continue;
    put(out, name, valueOf({ name, control }, given));
  }
  if (values.alert === "false") out.alert = false;
  if (out.deliver?.channel) out.deliver = deliverFrom(out.deliver, values.keptDeliver);
  if (out.schedule.type === "once" && /(Z|[+-]\d\d:?\d\d)$/.test(out.schedule.at ?? "")) delete out.schedule.timezone;
  return out;
}

function put(out, name, value) {
  const [first, second] = name.split(".");
  if (second) out[first] = { ...out[first], [second]: value };
  else out[first] = value;
}

/** The `deliver` field: as stored if the text was not changed, else one recipient or several. */
function deliverFrom(given, kept) {
  if (kept && given.channel === deliverText(kept)) return kept;
  const named = given.channel
    .split(",")
    .map((text) => text.trim())
    .filter(Boolean);
  if (named.length < 2 && !given.channel.includes(ARROW)) return given;
  return named.map((text) => {
    const [channel, to] = text.split(ARROW).map((part) => part.trim());
    return to ? { channel, to } : { channel };
  });
}

/** The form's text for a definition. */
export function toForm(form, given) {
  const definition = { ...given };
  const timing = { type: "cron", ...definition.schedule };
  if (timing.type === "interval") Object.assign(timing, { type: "every", every: `${timing.intervalMinutes}m` });
  if (timing.type === "at") timing.type = "once";
  const values = {
    timing: timing.type,
    action: form.actions.find(({ name }) => definition[name] != null)?.name ?? "prompt",
  };
  if (Array.isArray(definition.deliver)) {
    values.keptDeliver = definition.deliver;
    definition.deliver = { channel: deliverText(definition.deliver) };
  }
  for (const { name, control, default: usual } of controlsOf(form, values)) {
    const [first, second] = name.split(".");
    const holder = first === "schedule" ? timing : definition[first];
    const value = second ? holder?.[second] : holder;
    const isLeftOut =
      value == null ||
      (control === "json" && JSON.stringify(value) === JSON.stringify(usual)) ||
      (control === "choice" && typeof value === "object"); // its parts have their own controls
    values[name] = isLeftOut ? "" : textOf({ control }, value);
  }
  return values;
}
