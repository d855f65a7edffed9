// How many checks found something, as the bar and the view of the health both count them.

/** The number of problems, and of warnings besides. */
export function countProblems({ problems = [], findings = [] }) {
  const bad = findings.filter(({ level }) => level === "bad").length;
  return { bad: Math.max(bad, problems.length), warnings: findings.filter(({ level }) => level === "warn").length };
}
