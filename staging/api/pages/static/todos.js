// "My AI todos": what waits for me, what runs (moving live), what ended.
import { operationCard, previewTable, problem } from "./card.js";
import { api, byId, el, notice, tell, withSession, word } from "./common.js";

let me = null;

function actionsOf(operation) {
  const actions = [];
  const act = (verb, body) => async () => {
    try { await api("POST", `/v1/operations/${encodeURIComponent(operation.id)}/${verb}`, body); await refresh(); }
    catch (error) { tell(error); }
  };
  const mine = operation.maker === me.userId;
  if (operation.code === 104 && !mine) {
    actions.push(["Approve", act("approve"), true]);
    actions.push(["Reject", async () => { const reason = await ask("Why?"); if (reason !== null) await act("reject", { reason })(); }]);
  }
  if (operation.canCancel && mine) {
    actions.push(["Cancel", async () => { const reason = await ask("Why?"); if (reason !== null) await act("cancel", { reason })(); }]);
  }
  if (operation.canRetry && mine) actions.push(["Try again", act("retry"), true]);
  if (operation.status === "fail" && !operation.canRetry && mine) actions.push(["Stage it again", () => restage(operation), true]);
  return actions;
}

// A question in a dialog of our own; null where the person changed their mind.
function ask(question) {
  return new Promise((resolve) => {
    const input = el("input", { "aria-label": word(question), maxlength: 500 });
    const dialog = el("dialog", {}, el("form", { method: "dialog" }, el("p", {}, word(question)), input,
      el("div", { class: "actions" }, el("button", { value: "yes", class: "primary" }, word("OK")), el("button", { value: "" }, word("Back")))));
    dialog.addEventListener("close", () => { resolve(dialog.returnValue === "yes" ? input.value : null); dialog.remove(); });
    document.body.append(dialog);
    dialog.showModal();
  });
}

async function restage(operation) {
  const request = { formId: operation.formId, opType: operation.opType, record: operation.targetBillId, payload: operation.payload ?? {},
    conversationId: operation.conversationId };
  try { showPreparation(await api("POST", "/v1/preparations", request)); }
  catch (error) { notice(""); byId("preparations").prepend(problem(error.body)); }
}

function showPreparation(preparation) {
  const cards = preparation.items.map((item) => previewTable(item.preview, preparation.items.length === 1));
  const form = el("form", {}, ...cards, el("div", { class: "actions" },
    el("button", { class: "primary" }, word("Confirm")), el("button", { type: "button", onclick: drop }, word("Drop"))));
  const card = el("article", { class: "preparation" }, el("header", {}, el("h3", {}, preparation.preview.title)), form);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const edits = {};
    for (const input of form.querySelectorAll("input")) if (input.value !== input.defaultValue) edits[input.name] = input.value;
    try {
      await api("POST", `/v1/preparations/${encodeURIComponent(preparation.preparationId)}/confirm`, Object.keys(edits).length ? { edits } : {});
      card.remove();
      notice(word("Confirmed. It is on its way."));
      await refresh();
    } catch (error) { card.querySelector(".problem")?.remove(); form.before(problem(error.body)); }
  });
  async function drop() {
    try { await api("DELETE", `/v1/preparations/${encodeURIComponent(preparation.preparationId)}`); } catch (error) { tell(error); }
    card.remove();
  }
  byId("preparations").prepend(card);
  card.querySelector("button").focus();
}

function fill(place, operations) {
  const focused = document.activeElement?.closest("article")?.id;
  byId(place).replaceChildren(...(operations.length ? operations.map((o) => operationCard(o, actionsOf(o))) : [el("p", { class: "quiet" }, word("Nothing."))]));
  if (focused && byId(place).querySelector(`#${CSS.escape(focused)}`)) document.getElementById(focused).focus();
}

let pending = false;
let again = false;
async function refresh() {
  if (pending) { again = true; return; }
  pending = true;
  try {
    const todos = await api("GET", "/v1/todos");
    for (const list of ["waiting", "running", "recent"]) fill(list, todos[list]);
    byId("n-waiting").textContent = todos.waiting.length || "";
    byId("n-running").textContent = todos.running.length || "";
  } catch (error) { tell(error); }
  pending = false;
  if (again) { again = false; await refresh(); }
}

await withSession(async (who) => {
  me = who;
  await refresh();
  const wanted = new URLSearchParams(location.search).get("preparation");
  if (wanted) {
    try { showPreparation(await api("GET", `/v1/preparations/${encodeURIComponent(wanted)}`)); } catch (error) { tell(error); }
  }
  const stream = new EventSource("/v1/events");
  stream.addEventListener("operation", refresh);
  stream.addEventListener("open", refresh);
});
