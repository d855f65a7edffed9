// Makes untrusted text (names, prompts, replies, errors) harmless to read.
// Markup is never interpreted, because everything is shown as text. What remains are characters that change how the
// surrounding text reads: control characters, and marks that change the writing direction. They are shown by code.

const TELLING =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;
const HAS_TELLING = new RegExp(TELLING.source);

/** The text with every invisible character written out. Line breaks and tabs stay. */
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

const UNSEEN =
  /[\p{Cc}\p{Cf}\p{Cn}\p{Co}\p{Cs}\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\u180b-\u180f\ufe00-\ufe0f\u{e0100}-\u{e01ef}]|(?! )\p{Zs}/gu;

/** The text for someone who has to approve it: everything invisible is written out, as on the
 * command line. */
export const written = (text) =>
  String(text)
    .replace(/\r\n/g, "\n")
    .replace(UNSEEN, (char) => (char === "\n" ? char : `\\u{${char.codePointAt(0).toString(16)}}`));

/** The text on one line, shortened. */
export function short(text, most = 120) {
  const line = String(text ?? "")
    .replace(/\s+/g, " ")
    .trim();
  return line.length > most ? `${line.slice(0, most - 1)}…` : line;
}

const HEADING = /^#{1,6} +/gm; // of Markdown, as agents write it

/** The beginning of a message or a reply on one line. */
export const preview = (text, most = 200) => short(String(text ?? "").replace(HEADING, ""), most);

/** `12 runs`, `1 run`. */
export function count(n, singular, plural = `${singular}s`) {
  return `${n.toLocaleString()} ${n === 1 ? singular : plural}`;
}

const OUTCOMES = {
  running: "running",
  waiting: "waiting",
  succeeded: "succeeded",
  failed: "failed",
  timedOut: "timed out",
  unconfirmed: "unconfirmed",
  unknown: "unknown",
  cancelled: "cancelled",
  skipped: "skipped",
  missed: "missed",
  planned: "planned",
  idle: "ok",
  disabled: "off",
};

/** An outcome or a status in words. */
export const outcomeWords = (outcome) => OUTCOMES[outcome] ?? String(outcome);

/** What a schedule does, in one line. */
export function actionWords(schedule) {
  if (schedule.prompt) return short(schedule.prompt);
  if (schedule.command) return short(schedule.command.argv.join(" "));
  if (schedule.http) return short(`${schedule.http.method ?? "POST"} ${schedule.http.url}`);
  if (schedule.call) return short(schedule.call.target);
  if (schedule.event) return short(schedule.event.text);
  if (schedule.dispatch?.celery) return short(`Celery task ${schedule.dispatch.celery.task}`);
  return "";
}

/** The view of a run's owner: a schedule, the heartbeat, a workflow (or `workflow:ID/HANDLER`) or a slot. */
export function placeOf(slug) {
  if (slug === "heartbeat") return "#/heartbeat";
  if (slug.startsWith("slot:")) return "#/slots";
  if (slug.startsWith("delivery:")) return "#/outbox";
  return slug.startsWith("workflow:")
    ? `#/workflows/${encodeURIComponent(slug.slice(9).split("/")[0])}`
    : `#/schedules/${encodeURIComponent(slug)}`;
}

/** The kind of a schedule's action. */
export const actionKind = (schedule) =>
  ["prompt", "command", "http", "call", "event", "dispatch"].find((kind) => schedule[kind] != null) ?? null;
