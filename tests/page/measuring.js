() => {
  // How long it takes from a pressed key to the paint that shows what it changed, as the browser measures it.
  const paints = [];
  new PerformanceObserver((list) => {
    for (const one of list.getEntries()) if (one.name === "keydown") paints.push(one.duration);
  }).observe({ type: "event", durationThreshold: 16 });

  const painted = () => new Promise((go) => requestAnimationFrame(() => setTimeout(go)));

  // A fire, as the daemon tells it: claimed, climbed, settled.
  let told = 0;
  const fire = (push) => {
    const at = new Date().toISOString();
    const runId = String(1e9 + told);
    const slug = `s${String(told % 10_000).padStart(5, "0")}`;
    const run = {
      stream: "runs",
      seq: told,
      at,
      runId,
      slug,
      plannedAt: at,
      dueAt: at,
      startedAt: at,
      endedAt: null,
      attempt: 1,
      trigger: "schedule",
      reason: null,
      rung: "claimed",
      error: null,
      nextAttemptAt: null,
    };
    push({ ...run, what: "claimed", outcome: "running" });
    push({ stream: "runs", seq: told, at, what: "climbed", runId, rung: "started" });
    push({ ...run, what: "settled", outcome: told % 9 ? "succeeded" : "failed", endedAt: at });
    told += 1;
  };

  window.measuring = {
    taken: () => paints.splice(0),
    painted,
    // When so many events have come, and so many come each second.
    flows: async (many, perSecond) => {
      for (let n = 0; wakeful.stream.received < many || wakeful.stream.perSecond < perSecond; n += 1) {
        if (n > 1_000)
          throw new Error(`only ${wakeful.stream.received} events came, ${wakeful.stream.perSecond} a second`);
        await new Promise((go) => setTimeout(go, 50));
      }
    },
    // So many fires, as fast as the page takes them, three hundred per frame.
    simulate: async (fires) => {
      for (let n = 0; n < fires; n += 1) {
        fire((event) => wakeful.stream._push(event));
        if (n % 300 === 299) await painted();
      }
    },
    // Bytes and elements that are left when the garbage is gone.
    held: async () => {
      for (let n = 0; n < 4; n += 1) {
        gc();
        await new Promise((go) => setTimeout(go, 50));
      }
      return [performance.memory.usedJSHeapSize, document.querySelectorAll("*").length];
    },
  };
};
