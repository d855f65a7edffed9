// Text of others (names, prompts, replies, errors) made harmless for the eye.
// Markup never becomes markup, because everything is shown as text. What is left are characters that change how the
// text around them reads: control characters, and marks that turn the direction of writing. They are shown by name.

const TELLING =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;
const HAS_TELLING = new RegExp(TELLING.source);

/** The text with every character that only acts, and does not show, written out. Line ends and tabs stay. */
export function visible(text) {
  const given = String(text);
  if (!HAS_TELLING.test(given)) return given;
  return given.replace(/\r\n/g, "\n").replace(TELLING, (char) => {
    const code = char.codePointAt(0);
    return code < 0x20
      ? String.fromCodePoint(0x2400 + code)
      : `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
}

/** At most so many characters, on one line. */
export function short(text, most = 120) {
  const line = String(text ?? "")
    .replace(/\s+/g, " ")
    .trim();
  return line.length > most ? `${line.slice(0, most - 1)}…` : line;
}

/** `12 runs`, `1 run`. */
export function count(n, one, many = `${one}s`) {
  return `${n.toLocaleString()} ${n === 1 ? one : many}`;
}

const OUTCOMES = {
  running: "running",
  waiting: "waiting",
  succeeded: "succeeded",
  failed: "failed",
  timedOut: "timed out",
  unconfirmed: "unconfirmed",
  unknown: "unknown",
  skipped: "skipped",
  missed: "missed",
  planned: "planned",
};

/** An outcome in words. */
export const outcomeWords = (outcome) => OUTCOMES[outcome] ?? String(outcome);

/** What a schedule does, in one line. */
export function actionWords(schedule) {
  if (schedule.prompt) return short(schedule.prompt);
  if (schedule.command) return short(schedule.command.argv.join(" "));
  if (schedule.http) return short(`${schedule.http.method ?? "POST"} ${schedule.http.url}`);
  if (schedule.call) return short(schedule.call.target);
  if (schedule.event) return short(schedule.event.text);
  return "";
}

/** Where the owner of a run is seen: most are schedules; the heartbeat, workflows and slots have views of their own. */
export function placeOf(slug) {
  if (slug === "heartbeat") return "#/heartbeat";
  if (slug.startsWith("slot:")) return "#/slots";
  return slug.startsWith("workflow:")
    ? `#/workflows/${encodeURIComponent(slug.slice(9))}`
    : `#/schedules/${encodeURIComponent(slug)}`;
}

/** Which kind of action it is. */
export const actionKind = (schedule) =>
  ["prompt", "command", "http", "call", "event"].find((kind) => schedule[kind] != null) ?? null;
