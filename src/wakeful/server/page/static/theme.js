// Apply the saved colour scheme before the first paint, so that the page does not flash.
(() => {
  try {
    const chosen = localStorage.getItem("wakeful.theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch {
    // Without storage the system's scheme is used.
  }
})();
