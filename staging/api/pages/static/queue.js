// The whole queue for operators, one's own operations for a person: filter, page, an operation's events as a timeline.
import { ago, api, badge, button, byId, el, facts, operationPath, tell, when, withReason, word } from "./common.js";
import { changesOf, standing } from "./card.js";
import { live, turns } from "./live.js";
import { problem } from "./problem.js";
import { formSchema, titleOf } from "./schema.js";
import { withSession } from "./session.js";

const SIZE = 50;
let me = null;
let page = 1;
const turn = turns();

function wanted() {
  const form = new FormData(byId("filter"));
  const given = (name) => String(form.get(name) ?? "").trim();
  const filter = {};
  if (given("status")) filter.status = [given("status")];
  if (given("code")) filter.code = [Number(given("code"))];
  if (given("formId")) filter.formId = [given("formId")];
  if (given("user")) filter.user = [given("user")];
  if (Number(given("age")) > 0) filter.createdTo = new Date(Date.now() - Number(given("age")) * Number(given("unit"))).toISOString();
  const direction = given("sort") === "oldest" ? "ASC" : "DESC";
  return { filter, page: { number: page, size: SIZE }, sort: [{ field: "createdAt", direction }] };
}

const act = (operation, verb, body) => async () => { await api("POST", operationPath(operation.id, verb), body); await load(); };

function actionsOf(operation) {
  const actions = [button(word("Events"), () => look(operation))];
  if (me.kind !== "operator") return actions;
  if (operation.canRetry) actions.push(button(word("Try again"), act(operation, "retry")));
  if (operation.canCancel) {
    actions.push(button(word("Cancel"), () => withReason(word("Cancel this?"), word("Cancel it"), (reason) => act(operation, "cancel", reason)())));
  }
  return actions;
}

function row(operation, schema) {
  const said = operation.message !== operation.meaning ? operation.message : "";
  const labelled = (label, ...content) => el("td", { "data-label": label }, content);
  return el("tr", { "data-id": operation.id }, el("th", { scope: "row" }, titleOf(operation, schema)),
    labelled(word("Status"), badge(operation, standing(operation, me))), labelled(word("Age"), ago(operation.createdAt)),
    labelled(word("User"), operation.maker), labelled(word("Attempts"), `${operation.attempt}/${operation.maxAttempts}`),
    labelled(word("Message"), said), el("td", { class: "actions" }, actionsOf(operation)));
}

async function look(operation) {
  const [{ timeline }, schema] = await Promise.all([import("./timeline.js"), formSchema(operation.formId)]);
  const fresh = await api("GET", operationPath(operation.id));
  byId("timeline-title").textContent = titleOf(fresh, schema);
  byId("timeline-body").replaceChildren(...[
    el("p", {}, badge(fresh, standing(fresh, me))),
    facts(word("Proposed for {user}", { user: fresh.maker }), when(fresh.createdAt, "medium"),
      fresh.conversationId && word("Conversation {id}", { id: fresh.conversationId }), word("Operation {id}", { id: fresh.id }), fresh.commandType),
    fresh.error && problem(fresh.error, schema), await timeline(fresh), changesOf(fresh, schema, false)].filter(Boolean));
  byId("timeline").showModal();
}

function offerForms(operations) {
  const known = byId("forms");
  const there = new Set([...known.children].map((option) => option.value));
  for (const form of [...me.forms, ...operations.map((o) => ({ formId: o.formId, label: o.preview?.formLabel ?? o.formId }))]) {
    if (there.has(form.formId)) continue;
    there.add(form.formId);
    known.append(el("option", { value: form.formId }, form.label));
  }
}

async function oldest(current) {
  const found = await api("POST", "/v1/operations/query",
    { filter: { status: ["pending"] }, page: { size: 1 }, sort: [{ field: "createdAt", direction: "ASC" }] });
  if (!current()) return;
  const [first] = found.items, place = byId("oldest");
  if (!first) { place.replaceChildren(word("Nothing waits.")); return; }
  const title = titleOf(first, await formSchema(first.formId));
  place.replaceChildren(word("{n} not ended yet; the oldest:", { n: found.page.total ?? "10000+" }), " ", ago(first.createdAt), ` · ${title} `,
    button(word("Oldest first"), () => { byId("filter").reset(); byId("filter").elements.status.value = "pending"; byId("filter").elements.sort.value = "oldest"; page = 1; return load(); }));
}

async function load() {
  const current = turn();
  try {
    const result = await api("POST", "/v1/operations/query", wanted());
    const schemas = await Promise.all(result.items.map((o) => formSchema(o.formId)));
    if (!current()) return 0;
    const focused = document.activeElement?.closest("tr")?.dataset.id;
    byId("rows").replaceChildren(...result.items.map((o, i) => row(o, schemas[i])));
    if (focused) byId("rows").querySelector(`tr[data-id="${CSS.escape(focused)}"] button`)?.focus();
    byId("nothing").hidden = result.items.length > 0;
    byId("page").textContent = word("Page {n} · {total} in all", { n: result.page.number, total: result.page.total ?? "10000+" });
    byId("previous").disabled = page === 1;
    byId("next").disabled = !result.page.hasMore;
    offerForms(result.items);
    await oldest(current);
  } catch (error) { tell(error); return error.retryAfterMs ?? 0; }
  return 0;
}

await withSession(async (who) => {
  me = who;
  byId("of-whom").textContent = me.kind === "operator" ? word("All operations of your company.") : word("All operations proposed for you. Act on them on the page My AI todos.");
  byId("user-filter").hidden = me.kind !== "operator";
  byId("filter").addEventListener("submit", (event) => { event.preventDefault(); page = 1; load(); });
  byId("reset-filter").addEventListener("click", () => { byId("filter").reset(); page = 1; load(); });
  byId("previous").addEventListener("click", () => { page -= 1; load(); });
  byId("next").addEventListener("click", () => { page += 1; load(); });
  byId("close").addEventListener("click", () => byId("timeline").close());
  await load();
  live(load, 2000);
});
