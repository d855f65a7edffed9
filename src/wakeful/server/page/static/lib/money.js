// Amounts for display.

/** US dollars: two decimals, small amounts with their first two digits. */
export function dollars(amount) {
  if (amount === null || amount === undefined) return "unknown";
  const digits = amount !== 0 && Math.abs(amount) < 0.01 ? { maximumSignificantDigits: 2 } : { minimumFractionDigits: 2, maximumFractionDigits: 2 };
  return `$${amount.toLocaleString(undefined, digits)}`;
}

/** An amount in a budget's unit. */
export const amountOf = (amount, unit) =>
  unit === "usd" ? dollars(amount) : `${Math.round(amount).toLocaleString()} tokens`;

/** `all`, `agent:NAME` or `schedule:SLUG` in words. */
export function scopeWords(scope) {
  const [kind, ...name] = scope.split(":");
  return name.length ? `${kind === "agent" ? "Agent" : "Schedule"} ${name.join(":")}` : "All agents";
}

/** How much of a budget is used: the share spent, the share reserved, and the outcome that gives its colour. */
export function use({ limit, spent, reserved }) {
  if (!(limit > 0)) return { spent: 1, reserved: 0, look: "failed" };
  const [gone, held] = [Math.min(1, spent / limit), Math.min(1, (spent + reserved) / limit)];
  return { spent: gone, reserved: held - gone, look: gone >= 1 ? "failed" : Math.round(100 * gone) >= 80 ? "timedOut" : "succeeded" };
}
