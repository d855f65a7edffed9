// Names that the daemon knows, for fields that refer to them: agents, channels, quota slots, labels of nodes.

import { get } from "./api.js";

const channels = async () => ["last", ...(await get("/api/channels")).channels.map(({ name }) => name)];

const SOURCES = {
  agent: async () => (await get("/api/agents")).agents.map(({ name }) => name),
  channel: channels,
  recipients: channels,
  slot: async () => (await get("/api/slots")).slots.map(({ name }) => name),
  label: async () => [...new Set((await get("/api/nodes")).nodes.flatMap(({ labels }) => labels ?? []))],
};

/** Whether a control offers names. */
export const isOffered = (control) => Object.hasOwn(SOURCES, control);

/** The names for a control; none if the daemon does not have them. */
export const namesFor = (control) => SOURCES[control]().catch(() => []);
