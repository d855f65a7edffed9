// When this browser last showed the page, so that the first view can say what happened since.

const KEY = "wakeful.visit";
const GAP = 5 * 60_000; // a shorter absence, such as a reload, is the same visit

/** The end of the visit before this one in milliseconds; null if there was none. */
export const lastVisit = (() => {
  try {
    const [end, before] = (localStorage.getItem(KEY) ?? "").split(",").map(Number);
    if (!end) return null;
    return Date.now() - end < GAP ? before || null : end;
  } catch {
    return null;
  }
})();

/** Record that the page is visible. */
export function noteVisit() {
  try {
    if (!document.hidden) localStorage.setItem(KEY, `${Date.now()},${lastVisit ?? ""}`);
  } catch {
    // Without storage, "since" is a day.
  }
}
