// The demo ERP's own form: opens prefilled by ?staging=, saves into the ERP, tells Opstage; shows a record by ?bill=.
import { ApiError, api, badge, busy, button, byId, el, facts, notice, operationPath, tell, word } from "./common.js";
import { editor } from "./fields.js";
import { previewView } from "./preview.js";
import { problem } from "./problem.js";
import { childOf, commandOf, formSchema, isEmpty } from "./schema.js";
import { withSession } from "./session.js";

const formId = document.body.dataset.form;
const place = byId("form");

// One row of the form, master or line. `values`: what it opens with; id and remove of a stored line are kept as they are.
function rowOf(level, values, path, isNew, only) {
  const wanted = level.fields.filter((f) => (only ? f.name in only : isNew ? f.writable : f.onUpdate && f.name in values));
  const editors = wanted.map((f) => [f.name, editor(formId, path + f.name, f, values[f.name] ?? null, "")]);
  const tables = Object.entries(values).filter(([name, v]) => Array.isArray(v) && childOf(level, name)).map(([name]) => name);
  if (isNew && !only) tables.push(...level.children.map((c) => c.name).filter((name) => !tables.includes(name)));
  const below = tables.map((name) => [name, linesOf(childOf(level, name), values[name] ?? [], `${path}${name}.`, isNew)]);
  return {
    node: el("div", { class: "row" }, el("div", { class: "pairs" }, editors.map(([, e]) => e.node)), below.map(([, b]) => b.node)),
    value() {
      const kept = Object.fromEntries(Object.entries(values).filter(([name]) => name === "id" || name === "remove"));
      for (const [name, e] of editors) if (!isEmpty(e.value()) || e.changed()) kept[name] = e.value();
      for (const [name, b] of below) if (b.value().length || (values[name] ?? []).length) kept[name] = b.value();
      return kept;
    },
    marks: (at) => [...editors.map(([name, e]) => [at + name, e]), ...below.flatMap(([name, b]) => b.marks(at + name))],
  };
}

function linesOf(child, list, path, isNew) {
  const rows = [], body = el("ol", { class: "rows" });
  function add(values) {
    const row = rowOf(child, values, path, isNew || !values.id, null);
    const item = el("li", {}, row.node, button(word("Remove line"), () => { rows.splice(rows.indexOf(row), 1); item.remove(); }));
    rows.push(row);
    body.append(item);
    return item;
  }
  list.forEach(add);
  return {
    node: el("fieldset", {}, el("legend", {}, child.label), body, button(word("Add line"), () => add({}).querySelector("input, select")?.focus())),
    value: () => rows.map((row) => row.value()),
    marks: (at) => rows.flatMap((row, i) => row.marks(`${at}[${i}].`)),
  };
}

async function openStaged(staging) {
  const [schema, prefill] = await Promise.all([formSchema(formId), api("GET", operationPath(staging, "prefill"))]);
  const values = prefill.values !== null && typeof prefill.values === "object" ? prefill.values : {};
  const command = commandOf(schema, prefill.commandType);
  const row = rowOf(schema, values, "", !prefill.record, command ? values : null);
  const trouble = el("div", {});
  const form = el("form", { novalidate: true }, facts(word("Proposed by your assistant; check it and add what is missing."), prefill.conversationId && word("Conversation {id}", { id: prefill.conversationId })),
    trouble, row.node, el("div", { class: "actions" }, el("button", { class: "primary" }, word("Save")), el("a", { class: "button", href: "/" }, word("Back to my AI todos"))));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    busy(form, () => save(false));
  });

  async function save(allowDuplicate) {
    const marks = new Map(row.marks(""));
    for (const made of marks.values()) made.mark("");
    trouble.replaceChildren();
    try {
      const saved = await api("POST", `/form/${encodeURIComponent(formId)}`, { staging, values: row.value(), allowDuplicate });
      const done = await api("POST", operationPath(staging, "complete"), { resultBillId: saved.resultBillId });
      history.replaceState(null, "", done.link);
      await showRecord(saved.resultBillId, badge(done));
      notice(word("Saved. The todo is done."));
    } catch (error) {
      if (!(error instanceof ApiError) || error.status === 401) throw error;
      const rest = (error.body.details ?? []).filter((d) => { marks.get(d.field)?.mark(d.message); return !marks.has(d.field); });
      const ways = error.body.code === "possible_duplicate" ? [button(word("Save anyway"), () => save(true), "primary")] : [];
      const told = problem({ ...error.body, details: rest.length ? rest : null }, schema, ways);
      told.tabIndex = -1;
      trouble.replaceChildren(told);
      told.focus();
    }
  }
  place.replaceChildren(form);
  title(schema);
}

async function showRecord(bill, ...before) {
  const [schema, record] = await Promise.all([formSchema(formId), api("GET", `/v1/forms/${encodeURIComponent(formId)}/records/${encodeURIComponent(bill)}`)]);
  const preview = { recordLabel: "", recordId: "", totals: [], warnings: [], ...stored(record, schema) };
  const states = [record.states.examined && word("Examined"), record.states.invalid && word("Invalid")];
  const { node } = previewView({ preview, formId, opType: "" }, schema);
  place.replaceChildren(el("article", { class: "card" }, el("header", {}, el("h2", {}, record.label), ...before), facts(states), node,
    el("div", { class: "actions" }, el("a", { class: "button", href: "/" }, word("Back to my AI todos")))));
  title(schema);
}

// A stored row in the shape of a preview, empty fields left out.
function stored(row, level) {
  const filled = level.fields.filter((f) => !isEmpty(row.values[f.name]));
  return {
    fields: filled.map((f) => ({ field: f.name, label: f.label, type: f.type, old: null, new: row.values[f.name], newText: row.texts[f.name] })),
    children: level.children.filter((c) => row.children[c.name]?.length).map((c) => (
      { child: c.name, label: c.label, lines: row.children[c.name].map((line) => ({ action: "add", lineId: line.id, ...stored(line, c) })) })),
  };
}

function title(schema) {
  byId("title").textContent = schema.label;
  document.title = `${schema.label} · ${document.body.dataset.title}`;
}

await withSession(async () => {
  const asked = new URLSearchParams(location.search);
  try {
    if (asked.get("staging")) await openStaged(asked.get("staging"));
    else if (asked.get("bill")) await showRecord(asked.get("bill"));
    else notice(word("Open this form from one of your AI todos."));
  } catch (error) { tell(error); }
});
