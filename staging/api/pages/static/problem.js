// Why something was refused, in words, and what to do about it: bad fields, candidates, seen / now / proposed.
import { el, word } from "./common.js";
import { atPath, lookedUp } from "./schema.js";

// `error`: the API's error object; `actions`: buttons that lead on.
export function problem(error, schema, actions = []) {
  const details = (error.details ?? []).map((d) => el("li", {}, el("strong", {}, atPath(schema, d.field).label), " ", d.message));
  const candidates = (error.candidates ?? []).map((c) => el("li", {}, c.label ?? c.name ?? c.id));
  return el("div", { class: "problem", role: "alert" },
    el("p", {}, details.length ? word("Some values do not fit:") : error.message),
    details.length ? el("ul", {}, details) : null,
    error.conflict?.length ? conflict(error.conflict, schema) : null,
    candidates.length ? [el("p", {}, word("It could be one of these:")), el("ul", {}, candidates)] : null,
    error.hint ? el("p", { class: "quiet" }, error.hint) : null,
    actions.length ? el("div", { class: "actions" }, actions) : null);
}

function conflict(parts, schema) {
  const heads = [word("Field"), word("You saw"), word("Now"), word("Proposed")];
  return el("div", { class: "scroll" }, el("table", { class: "conflict stacks" },
    el("thead", {}, el("tr", {}, heads.map((text) => el("th", { scope: "col" }, text)))),
    el("tbody", {}, parts.map((part) => el("tr", {}, el("th", { scope: "row" }, labelOf(part, schema)),
      cell(part, part.seen, heads[1], schema), cell(part, part.now, heads[2], schema, "changed"), cell(part, part.proposed, heads[3], schema))))));
}

function labelOf(part, schema) {
  return part.label && part.label !== part.field ? part.label : atPath(schema, part.field).label;
}

function cell(part, value, label, schema, kind = null) {
  const node = el("td", { "data-label": label, class: kind }, "…");
  const { field } = atPath(schema, part.field);
  const isLine = String(part.field).endsWith("]");
  if (isLine) node.textContent = lineText(value);
  else if (value === null || value === undefined) node.textContent = "—";
  else lookedUp(field, value).then((text) => { node.textContent = text; });
  return node;
}

// A pinned line says whether it is there, and what was to become of it.
function lineText(value) {
  const words = { change: word("changed"), remove: word("removed"), keep: word("unchanged") };
  if (value === true) return word("there");
  return value === null || value === undefined ? word("gone") : words[value] ?? String(value);
}
