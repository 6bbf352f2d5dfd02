// What would change: fields old -> new, lines and lines below them, totals, warnings. With `edit`, values can be changed.
import { el, word } from "./common.js";
import { Edits } from "./edits.js";
import { childOf, fieldOf, isEmpty, shown } from "./schema.js";

const ACTIONS = { add: word("added"), change: word("changed"), remove: word("removed"), keep: word("unchanged") };
const FITS_A_PHONE = 3; // columns
const NUMERIC = new Set(["decimal", "integer"]);

// `subject`: {preview, formId, opType, commandType}. Gives {node, edits}; `edits` is null where nothing can be changed.
export function previewView(subject, schema, { edit = false } = {}) {
  const { preview } = subject;
  const edits = edit ? new Edits(subject, schema) : null;
  const isNew = preview.fields.every((c) => isEmpty(c.old)) && !preview.recordId;
  const node = el("div", { class: "preview" },
    preview.warnings.map((w) => el("p", { class: "warning" }, w.message)),
    isNew ? pairs(preview.fields, schema, edits) : changes(preview.fields, schema, edits),
    edits && more(edits),
    preview.children.map((section) => lines(section, childOf(schema, section.child), section.child, isNew, edits?.lines(section))),
    totals(preview.totals, schema, edit),
    edit && preview.totals.length ? el("p", { class: "quiet" }, word("Totals and amounts are worked out again.")) : null);
  return { node, edits };
}

const labelOf = (change, level) => fieldOf(level, change.field)?.label ?? change.label;

function side(change, which, level) {
  return shown(change.type, fieldOf(level, change.field), change[which], change[`${which}Text`]);
}

// A new record: label and value.
function pairs(fields, schema, edits) {
  if (!fields.length) return null;
  return el("dl", { class: "pairs" }, fields.map((change) => {
    const editor = edits?.field(change);
    const wide = change.type === "text" ? "wide" : null;
    if (editor) return el("div", { class: wide }, el("dd", {}, editor.node));
    return el("div", { class: wide }, el("dt", {}, labelOf(change, schema)), el("dd", { class: NUMERIC.has(change.type) ? "num" : null }, side(change, "new", schema)));
  }));
}

// What a new record leaves empty may be filled in as well.
function more(edits) {
  const empty = edits.emptyFields();
  if (!empty.length) return null;
  return el("details", { class: "more" }, el("summary", {}, word("More fields")),
    el("dl", { class: "pairs" }, empty.map((editor) => el("div", {}, el("dd", {}, editor.node)))));
}

// A stored record: before and after.
function changes(fields, schema, edits) {
  if (!fields.length) return null;
  const head = [word("Field"), word("Before"), word("After")].map((text) => el("th", { scope: "col" }, text));
  return el("div", { class: "scroll" }, el("table", { class: "changes" }, el("thead", {}, el("tr", {}, head)),
    el("tbody", {}, fields.map((change) => el("tr", {}, el("th", { scope: "row" }, labelOf(change, schema)),
      el("td", {}, el("del", {}, side(change, "old", schema) || "—")),
      el("td", {}, edits?.field(change, true)?.node ?? el("ins", {}, side(change, "new", schema) || "—")))))));
}

function lines(section, level, path, isNew, edits, depth = 0) {
  const seen = new Map(section.lines.flatMap((line) => line.fields.map((c) => [c.field, c])));
  const order = level?.fields.map((f) => f.name) ?? [];
  const columns = [...seen.values()].sort((a, b) => order.indexOf(a.field) - order.indexOf(b.field));
  const label = level?.label ?? section.label;
  const rows = section.lines.flatMap((line, index) => {
    const own = edits?.line(line, index);
    const name = isNew ? String(index + 1) : ACTIONS[line.action];
    const below = line.children.map((s) => lines(s, childOf(level, s.child), `${path}.${s.child}`, isNew, own?.lines(s), depth + 1));
    return [el("tr", { class: `line ${line.action}` }, el("th", { scope: "row", class: "which" }, name),
      columns.map((column) => cell(line.fields.find((c) => c.field === column.field), column, line, level, own))),
    below.length ? el("tr", { class: "below" }, el("td", { colspan: columns.length + 1 }, below)) : null].filter(Boolean);
  });
  const head = columns.map((c) => el("th", { scope: "col", class: NUMERIC.has(c.type) ? "num" : null }, labelOf(c, level)));
  const title = `${label} (${section.lines.length})`;
  return el("section", { class: "lines" }, el(depth ? "h5" : "h4", {}, title), el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": title },
    el("table", { class: columns.length > FITS_A_PHONE ? "stacks" : null }, el("thead", {}, el("tr", {}, el("th", { scope: "col", class: "which" }, "#"), head)), el("tbody", {}, rows))));
}

function cell(change, column, line, level, edits) {
  const attributes = { "data-label": labelOf(column, level), class: NUMERIC.has(column.type) ? "num" : null };
  if (!change) return el("td", { ...attributes, class: "none" });
  const editor = edits?.field(change);
  if (editor) return el("td", attributes, editor.node);
  const before = side(change, "old", level), after = side(change, "new", level);
  if (line.action === "remove") return el("td", attributes, el("del", {}, before));
  if (line.action === "add" || before === after) return el("td", attributes, after);
  return el("td", attributes, before ? el("del", {}, before) : null, " ", el("ins", {}, after || "—"));
}

function totals(list, schema, stale) {
  if (!list.length) return null;
  return el("dl", { class: stale ? "totals stale" : "totals" }, list.map((change) => {
    const before = side(change, "old", schema), after = side(change, "new", schema);
    return el("div", {}, el("dt", {}, labelOf(change, schema)),
      el("dd", {}, before && before !== after ? [el("del", {}, before), " "] : null, el("strong", {}, after)));
  }));
}

// A row that another program wrote has no preview: its payload in the same shape, labels as far as the form knows them.
export function previewOfPayload(operation, schema) {
  const known = operation.payload !== null && typeof operation.payload === "object" && !Array.isArray(operation.payload);
  const payload = known ? operation.payload : { payload: operation.payload };
  const { fields, children } = level(payload, schema);
  return { title: "", recordId: "", recordLabel: operation.targetBillId, fields, children, totals: [], warnings: [] };
}

function level(values, schema) {
  const fields = [], children = [];
  for (const [name, value] of Object.entries(values)) {
    const isLines = Array.isArray(value) && value.length > 0 && value.every((v) => v !== null && typeof v === "object" && !Array.isArray(v));
    if (isLines) children.push({ child: name, label: name, lines: value.map((v) => ({ action: "add", lineId: "", ...level(v, childOf(schema, name)) })) });
    else if (!isEmpty(value)) fields.push({ field: name, label: name, type: fieldOf(schema, name)?.type ?? typeof value, old: null, new: value, oldText: "", newText: "" });
  }
  return { fields, children };
}
