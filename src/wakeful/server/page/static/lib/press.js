// Holds back new data while a button or link is held down. A view that redraws its buttons between press and release would
// lose the click, because press and release would then be on different elements.

const CONTROLS = "a, button, summary, label, input, select";
const HOLD_MAX = 5_000; // milliseconds: a release that is never reported must not stop the page

let held = null; // a promise until the release, and what resolves it

addEventListener("pointerdown", (event) => press(event.target), true);
addEventListener("keydown", (event) => event.key === " " && press(event.target), true);
for (const name of ["pointerup", "pointercancel", "dragend"]) addEventListener(name, release, true);
addEventListener("keyup", (event) => event.key === " " && release(), true);
addEventListener("blur", release); // of the window

function press(target) {
  if (held || !target.closest?.(CONTROLS)) return;
  let end;
  const promise = new Promise((resolve) => (end = resolve));
  held = { promise, end, timer: setTimeout(release, HOLD_MAX) };
}

function release() {
  if (!held) return;
  clearTimeout(held.timer);
  const { end } = held;
  held = null;
  setTimeout(end); // after the click, which follows the release at once
}

/** Resolves as soon as nothing is held down. */
export const released = async () => {
  while (held) await held.promise;
};

export const isPressed = () => held !== null;
