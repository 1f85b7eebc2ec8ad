// Runs in every document of a test before the document's own scripts: notes what the console must not do, and counts
// what is under way, so that tests wait for the work instead of for a time.
(() => {
  const seen = { faults: [], open: 0, changes: 0, asked: 0, polls: 0, refused: 0, writes: 0 };
  window.seen = seen;
  document.addEventListener("securitypolicyviolation", (event) => {
    seen.faults.push(`policy: ${event.effectiveDirective} refused ${event.blockedURI} ${event.sourceFile}:${event.lineNumber} ${event.sample}`);
  });
  addEventListener("error", (event) => {
    seen.faults.push(`error: ${event.message ?? `${event.target.localName} ${event.target.src ?? event.target.href}`}`);
  }, true);
  addEventListener("unhandledrejection", (event) => seen.faults.push(`rejection: ${event.reason?.stack ?? event.reason}`));
  new MutationObserver(() => { seen.changes += 1; })
    .observe(document, { subtree: true, childList: true, attributes: true, characterData: true });

  const ask = window.fetch;
  window.fetch = async (resource, options) => {
    const url = new URL(resource.url ?? resource, document.baseURI);
    seen.asked += 1;
    if (!["GET", undefined].includes(options?.method)) seen.writes += 1;
    const isApi = url.pathname.includes("/v1/");
    if (isApi && window.answers && !url.pathname.endsWith("/auth/me")) {
      const { status, body } = window.answers;
      return new Response(JSON.stringify(body), { status, headers: { "Content-Type": "application/json; charset=utf-8" } });
    }
    // A poll is open as long as nothing happens.
    if (url.pathname.endsWith("/webhooks/events") && url.searchParams.get("wait") !== "0") {
      seen.polls += 1;
      return ask(resource, options);
    }
    seen.open += 1;
    try {
      const response = await ask(resource, options);
      if (response.status === 429) seen.refused += 1;
      seen.open += 1;
      response.clone().arrayBuffer().catch(() => {}).finally(() => { seen.open -= 1; });
      return response;
    } finally {
      seen.open -= 1;
    }
  };

  // Calls after the next frame, when what waits for a frame has run; a window that is not shown draws none.
  const afterFrame = (call) => {
    let called = false;
    const once = () => {
      if (!called) setTimeout(call);
      called = true;
    };
    requestAnimationFrame(once);
    setTimeout(once, 100);
  };

  const heading = () => document.querySelector("main h1")?.textContent.trim();

  // Comes to null once the screen with this heading is drawn (any, when none is given) and nothing has happened for three
  // frames, or to what is missing.
  seen.settled = (wanted, patience) => new Promise((resolve) => {
    const began = performance.now();
    let [quiet, changes] = [0, -1];
    const look = () => {
      const busy = document.querySelector("main [aria-busy=true]");
      const isDrawn = wanted ? heading() === wanted : Boolean(heading());
      const isQuiet = isDrawn && !seen.open && !busy && seen.changes === changes;
      changes = seen.changes;
      quiet = isQuiet ? quiet + 1 : 0;
      if (quiet >= 3) resolve(null);
      else if (performance.now() - began < patience) afterFrame(look);
      else resolve(`h1 ${JSON.stringify(heading() ?? null)}, ${seen.open} requests open, ${busy ? "busy" : "not busy"}, ${document.body?.innerText.slice(0, 300)}`);
    };
    look();
  });

  // Comes to true once the condition holds, or to false.
  seen.until = (condition, patience) => new Promise((resolve) => {
    const began = performance.now();
    const look = () => {
      if (condition()) resolve(true);
      else if (performance.now() - began < patience) setTimeout(look, 16);
      else resolve(false);
    };
    look();
  });
})();
