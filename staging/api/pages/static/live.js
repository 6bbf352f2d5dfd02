// Moves the page by itself: the event stream says that something happened, the page then reads what is.
import { api, byId, word } from "./common.js";

const LOOK_MS = 30000; // without an event: somebody else's operation may wait for this user's approval
const RETRY_MS = 4000;

// Answers may arrive in another order than they were asked for. Each call begins a turn and gets a function that says,
// once its answer is there, whether to show it: not where the answer to a later call is shown already.
export function turns() {
  let begun = 0, shown = 0;
  return () => {
    const mine = ++begun;
    return () => {
      if (mine < shown) return false;
      shown = mine;
      return true;
    };
  };
}

// Calls `refresh` at most every `leastMs`, never twice at once, and once more for what came meanwhile.
export function live(refresh, leastMs = 700) {
  let running = false, due = false, timer = null, endedAt = 0;
  async function run() {
    timer = null;
    running = true;
    due = false;
    const wait = await refresh() ?? 0;
    running = false;
    endedAt = Date.now() + wait;
    if (due) soon();
  }
  function soon() {
    due = true;
    if (!running && timer === null) timer = setTimeout(run, Math.max(0, endedAt + leastMs - Date.now()));
  }

  function state(on) {
    const place = byId("live");
    place.className = on ? "live on" : "live";
    place.textContent = on ? word("Live") : word("Reconnecting…");
  }
  function connect() {
    const stream = new EventSource("/v1/events");
    stream.addEventListener("open", () => { state(true); soon(); });
    stream.addEventListener("operation", soon);
    stream.addEventListener("error", () => {
      state(false);
      if (stream.readyState !== EventSource.CLOSED) return; // the browser tries again by itself, from where it was
      setTimeout(async () => {
        try { await api("GET", "/v1/me"); } catch (error) { if (error.status === 401) { location.reload(); return; } }
        connect();
      }, RETRY_MS);
    });
    addEventListener("pagehide", () => stream.close(), { once: true });
  }
  connect();
  document.addEventListener("visibilitychange", () => { if (!document.hidden) soon(); });
  setInterval(() => { if (!document.hidden) soon(); }, LOOK_MS);
  return soon;
}
