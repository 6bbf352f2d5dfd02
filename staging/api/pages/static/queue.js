// The operators' view: filter, page, and an operation's events as a timeline.
import { api, badge, byId, el, tell, when, withSession, word } from "./common.js";

let page = 1;

function wanted() {
  const form = new FormData(byId("filter"));
  const filter = {};
  if (form.get("status")) filter.status = [form.get("status")];
  if (form.get("code")) filter.code = [Number(form.get("code"))];
  if (form.get("formId")) filter.formId = [form.get("formId")];
  if (form.get("user")) filter.user = [form.get("user")];
  if (form.get("age")) filter.createdTo = new Date(Date.now() - Number(form.get("age")) * 60000).toISOString();
  return { filter, page: { number: page, size: 50 } };
}

function line(operation) {
  const act = (verb) => async () => { try { await api("POST", `/v1/operations/${encodeURIComponent(operation.id)}/${verb}`); await load(); } catch (error) { tell(error); } };
  return el("tr", {}, el("td", {}, when(operation.createdAt)), el("td", {}, badge(operation)),
    el("td", {}, operation.preview?.title || `${operation.formId} ${operation.opType}`), el("td", {}, operation.maker),
    el("td", {}, `${operation.attempt}/${operation.maxAttempts}`), el("td", {}, operation.message),
    el("td", { class: "actions" }, el("button", { type: "button", onclick: () => timeline(operation) }, word("Events")),
      operation.canCancel ? el("button", { type: "button", onclick: act("cancel") }, word("Cancel")) : null,
      operation.canRetry ? el("button", { type: "button", onclick: act("retry") }, word("Try again")) : null));
}

async function timeline(operation) {
  try {
    const events = await api("GET", `/v1/operations/${encodeURIComponent(operation.id)}/journal`);
    byId("timeline-title").textContent = operation.preview?.title || operation.id;
    byId("timeline").querySelector("ol").replaceChildren(...events.map((e) =>
      el("li", {}, `${when(e.at)} · ${e.verb} → ${e.code} ${e.meaning}${e.actor ? ` · ${e.actor}` : ""}${e.message ? ` · ${e.message}` : ""}`)));
    byId("timeline").showModal();
  } catch (error) { tell(error); }
}

async function load() {
  try {
    const result = await api("POST", "/v1/operations/query", wanted());
    byId("rows").replaceChildren(...result.items.map(line));
    byId("page").textContent = `${result.page.number} · ${result.page.total ?? "…"}`;
    byId("previous").disabled = page === 1;
    byId("next").disabled = !result.page.hasMore;
    const oldest = await api("POST", "/v1/operations/query",
      { filter: { status: ["pending"] }, page: { size: 1 }, sort: [{ field: "createdAt", direction: "ASC" }] });
    byId("oldest").textContent = oldest.items.length ? `${word("Oldest waiting")}: ${when(oldest.items[0].createdAt)}` : word("Nothing waits.");
  } catch (error) { tell(error); }
}

await withSession(async () => {
  byId("filter").addEventListener("submit", (event) => { event.preventDefault(); page = 1; load(); });
  byId("previous").addEventListener("click", () => { page -= 1; load(); });
  byId("next").addEventListener("click", () => { page += 1; load(); });
  byId("close").addEventListener("click", () => byId("timeline").close());
  await load();
  const stream = new EventSource("/v1/events");
  stream.addEventListener("operation", load);
});
