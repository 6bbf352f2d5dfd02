// "My AI todos": what waits for me, what runs (moving live), what ended and why.
import { api, button, byId, el, notice, operationPath, preparationPath, tell, withReason, word } from "./common.js";
import { operationCard } from "./card.js";
import { live, turns } from "./live.js";
import { problem } from "./problem.js";
import { showPreparation } from "./preparation.js";
import { formSchema, titleOf } from "./schema.js";
import { withSession } from "./session.js";

const FEW = 10;
let me = null;
let soon = () => {};
let all = false;
const turn = turns();
const cards = new Map(); // operation id -> {seq, node}
let ran = new Map(); // what was under way at the last look: id -> title

const act = (operation, verb, body) => async () => { await api("POST", operationPath(operation.id, verb), body); soon(); };

function actionsOf(operation) {
  const mine = operation.maker === me.userId, actions = [];
  if (operation.code === 103 && operation.link) actions.push(el("a", { class: "button primary", href: operation.link }, word("Complete it in the ERP")));
  else if (operation.link) actions.push(el("a", { class: "button", href: operation.link }, word("Open the record")));
  if (operation.code === 104 && !mine) {
    actions.push(button(word("Approve"), act(operation, "approve"), "primary"));
    actions.push(button(word("Reject"), () => withReason(word("Reject this?"), word("Reject"), (reason) => act(operation, "reject", reason)())));
  }
  if (operation.canCancel && mine) actions.push(button(word("Cancel"), () => withReason(word("Cancel this?"), word("Cancel it"), (reason) => act(operation, "cancel", reason)())));
  if (operation.canRetry && mine) actions.push(button(word("Try again"), act(operation, "retry"), "primary"));
  if (operation.status === "fail" && !operation.canRetry && mine) {
    const twin = operation.error?.code === "possible_duplicate";
    const label = twin ? word("Submit anyway") : word("Prepare again as things are now");
    actions.push(button(label, () => again(operation, "restage", twin ? { allowDuplicate: true } : {}), operation.code === 409 ? "primary" : ""));
  }
  if (operation.status === "success" && mine) actions.push(button(word("Take it back"), () => again(operation, "revert")));
  return actions;
}

// A new preparation out of an operation; nothing happens before it is confirmed.
async function again(operation, verb, body) {
  notice("");
  try { (await show(await api("POST", operationPath(operation.id, verb), body))).focus(); } catch (error) {
    if (!error.body || error.status === 401) throw error;
    const told = problem(error.body, await formSchema(operation.formId));
    told.tabIndex = -1;
    const node = cards.get(operation.id)?.node;
    node?.querySelector(".again")?.remove();
    node?.append(el("div", { class: "again" }, told));
    told.focus();
  }
}

function show(preparation) {
  return showPreparation(preparation, byId("preparations"), {
    gone: () => { history.replaceState(null, "", "/"); count(); },
    done: async (operations) => {
      notice(word("Confirmed. It is on its way."));
      await refresh();
      cards.get(operations[0]?.id)?.node.focus();
    },
  }).finally(count);
}

function count(waiting = Number(byId("n-waiting").dataset.operations ?? 0)) {
  byId("n-waiting").dataset.operations = waiting;
  const n = waiting + byId("preparations").children.length;
  byId("n-waiting").textContent = n || "";
  document.title = n ? `(${n}) ${document.body.dataset.title}` : document.body.dataset.title;
  byId("nothing-waits").hidden = n > 0;
}

// Puts the cards of `operations` into `place`, touching only those that moved: what is open or focused stays so.
async function fill(place, operations, open) {
  const nodes = await Promise.all(operations.map(async (operation) => {
    const known = cards.get(operation.id);
    if (known?.seq === operation.seq) return known.node;
    const schema = await formSchema(operation.formId);
    const wasOpen = known?.node.querySelector("details.what")?.open;
    const node = operationCard(operation, schema, { actions: actionsOf(operation), open: wasOpen ?? open, me });
    cards.set(operation.id, { seq: operation.seq, node });
    return node;
  }));
  const kept = new Set(nodes);
  for (const node of [...place.children]) if (!kept.has(node)) node.remove(); // first, so that what stays is not moved
  nodes.forEach((node, i) => { if (place.children[i] !== node) place.insertBefore(node, place.children[i] ?? null); });
}

// Says aloud what ended since the last look.
async function announce(todos) {
  const ended = todos.recent.filter((o) => ran.has(o.id));
  if (ended.length) notice(ended.map((o) => `${ran.get(o.id)}: ${o.meaning}`).join(" "));
  ran = new Map(await Promise.all(todos.running.map(async (o) => [o.id, titleOf(o, await formSchema(o.formId))])));
}

// Gives the milliseconds to wait where the server asks for patience.
async function refresh() {
  const current = turn();
  let todos;
  try { todos = await api("GET", "/v1/todos?limit=100"); } catch (error) { tell(error); return error.retryAfterMs ?? 0; }
  if (!current()) return 0;
  const recent = all ? todos.recent : todos.recent.slice(0, FEW);
  const focused = document.activeElement?.closest("article")?.id;
  await fill(byId("waiting"), todos.waiting, todos.waiting.length <= 3);
  await fill(byId("running"), todos.running, false);
  await fill(byId("recent"), recent, false);
  if (focused && document.activeElement === document.body) byId(focused)?.focus(); // it moved, the person's place with it
  byId("n-running").textContent = todos.running.length || "";
  byId("nothing-runs").hidden = todos.running.length > 0;
  byId("nothing-ended").hidden = todos.recent.length > 0;
  byId("more").hidden = all || todos.recent.length <= FEW;
  count(todos.waiting.length);
  await announce(todos);
  return 0;
}

// The card a chat's link leads to; where it has been confirmed already, what became of it.
async function openWanted() {
  const wanted = new URLSearchParams(location.search).get("preparation");
  if (!wanted) return;
  try { (await show(await api("GET", preparationPath(wanted)))).focus(); } catch (error) {
    if (error.status !== 404) { tell(error); return; }
    const found = await api("POST", "/v1/operations/query", { filter: { preparationId: wanted } });
    history.replaceState(null, "", "/");
    if (!found.items.length) { tell(error); return; }
    notice(word("This has been confirmed already."));
    cards.get(found.items[0].id)?.node.focus();
  }
}

await withSession(async (who) => {
  me = who;
  if (me.kind === "operator") { location.replace("/queue"); return; }
  byId("more").addEventListener("click", () => { all = true; refresh(); });
  await refresh();
  await openWanted();
  soon = live(refresh);
});
