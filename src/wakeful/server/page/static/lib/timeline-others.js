// Rows of the time axis that are not schedules: heartbeats, the producers and consumers of workflows, wakes of quota
// slots, and deliveries by channel.

import { get, has } from "./api.js";
import { at } from "./time.js";

/** The kinds that can be shown or left out, and which rows each has. */
export const KINDS = [
  ["beats", "Heartbeat", (slug) => slug === "heartbeat"],
  ["producers", "Workflow handlers", (slug) => slug.startsWith("workflow:")],
  ["wakes", "Quota wakes", (slug) => slug.startsWith("slot:")],
  ["deliveries", "Deliveries", (slug) => slug.startsWith("delivery:")],
];

/** The kinds shown by default: there are many deliveries, and they repeat what the runs show. */
export const SHOWN = ["beats", "producers", "wakes"];

/** The kind of a row; null for a schedule. */
export const kindOf = (slug) => KINDS.find(([, , is]) => is(slug))?.[0] ?? null;

/** The name of a row as it is shown: a handler of a workflow without the kind. */
export const rowName = (slug) => (slug.includes("/") ? slug.replace(/^workflow:/, "") : slug);

const OUTCOMES = { delivered: "succeeded", pending: "waiting", dead: "failed", discarded: "skipped" };
const DELIVERIES_MAX = 200;

/** The latest deliveries as rows, one for each channel. */
export async function deliveryRows(signal) {
  if (!(await has("/api/deliveries"))) return [];
  const { deliveries } = await get("/api/deliveries", { limit: DELIVERIES_MAX }, signal);
  const channels = Object.groupBy(deliveries, (delivery) => delivery.channel ?? "none");
  return Object.entries(channels)
    .sort()
    .map(([channel, some]) => row(channel, some));
}

function row(channel, some) {
  const oldest = some.at(-1).enqueuedAt;
  const isAny = (wanted) => some.some(({ status }) => status === wanted);
  return {
    slug: `delivery:${channel}`,
    status: "idle",
    health: isAny("dead") ? "failing" : isAny("pending") ? "waiting" : "ok",
    createdAt: oldest,
    nextRun: null,
    timezone: null,
    runs: some.map(mark),
    wholeSince: some.length < DELIVERIES_MAX ? new Date(0).toISOString() : oldest,
    planned: some.map(({ nextAttemptAt }) => nextAttemptAt).filter((time) => time && at(time) > Date.now()).sort(),
    wholeUntil: new Date(8.64e15).toISOString(),
  };
}

const mark = (delivery) => ({
  runId: `d${delivery.id}`,
  outcome: OUTCOMES[delivery.status] ?? "unknown",
  reason: null,
  error: delivery.lastError,
  trigger: delivery.slug ?? "a message",
  plannedAt: delivery.enqueuedAt,
  startedAt: delivery.enqueuedAt,
  endedAt: delivery.endedAt,
});
