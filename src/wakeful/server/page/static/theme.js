// Before anything is painted: the scheme this browser was told to use, so that the page never flashes in the other one.
(() => {
  try {
    const chosen = localStorage.getItem("wakeful.theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch {
    // A browser that keeps nothing follows the system.
  }
})();
