// One operation or preparation as a card: old -> new per field, child lines, totals, warnings, and what one may do.
import { badge, el, when, word } from "./common.js";

function row(change, indent, edit) {
  const label = el("th", { scope: "row", style: `padding-left:${0.5 + indent}rem` }, change.label);
  const fresh = edit && indent === 0
    ? el("td", { class: "new" }, el("input", { name: change.field, value: change.new ?? "", "aria-label": change.label }))
    : el("td", { class: change.newText !== change.oldText ? "new" : "" }, change.newText);
  return el("tr", {}, label, el("td", { class: change.oldText ? "old" : "" }, change.oldText), fresh);
}

function section(part, indent, rows) {
  part.lines.forEach((line, index) => {
    rows.push(el("tr", { class: `line-${line.action}` },
      el("td", { colspan: 3, style: `padding-left:${0.5 + indent}rem` }, `${part.label} ${index + 1}`)));
    line.fields.forEach((change) => rows.push(row(change, indent + 1, false)));
    line.children.forEach((below) => section(below, indent + 1, rows));
  });
}

export function previewTable(preview, edit = false) {
  const rows = [];
  preview.fields.forEach((change) => rows.push(row(change, 0, edit)));
  preview.children.forEach((part) => section(part, 0, rows));
  preview.totals.forEach((change) => rows.push(row(change, 0, false)));
  return el("div", { class: "scroll" },
    el("table", {}, el("thead", {}, el("tr", {}, ...["Field", "Before", "After"].map((w) => el("th", { scope: "col" }, word(w))))),
      el("tbody", {}, ...rows)),
    ...preview.warnings.map((w) => el("p", { class: "warning" }, w.message)));
}

function conflict(parts) {
  return el("div", { class: "scroll" }, el("table", { class: "conflict" },
    el("thead", {}, el("tr", {}, ...["Field", "Seen", "Now", "Proposed"].map((w) => el("th", { scope: "col" }, word(w))))),
    el("tbody", {}, ...parts.map((c) => el("tr", {}, el("th", { scope: "row" }, c.label ?? c.field),
      el("td", { class: "old" }, c.seen ?? ""), el("td", {}, c.now ?? ""), el("td", { class: "new" }, c.proposed ?? ""))))));
}

export function problem(error) {
  return el("div", { class: "problem" }, el("p", {}, error.message), error.hint ? el("p", { class: "quiet" }, error.hint) : null,
    ...(error.details ?? []).map((d) => el("p", {}, `${d.field}: ${d.message}`)),
    error.conflict?.length ? conflict(error.conflict) : null);
}

// `actions`: {label: [enabled, handler, primary]} built by the page.
export function operationCard(operation, actions) {
  const title = operation.preview?.title || `${operation.formId} ${operation.opType}`;
  const facts = [operation.maker, when(operation.createdAt), operation.conversationId && `${word("Conversation")} ${operation.conversationId}`,
    operation.attempt > 0 && `${word("Attempts")} ${operation.attempt}/${operation.maxAttempts}`].filter(Boolean).join(" · ");
  const card = el("article", { id: `op-${operation.id}`, "data-code": operation.code, tabindex: -1 },
    el("header", {}, el("h3", {}, title), badge(operation)), el("p", { class: "quiet" }, facts));
  if (operation.error) card.append(problem(operation.error));
  else if (operation.message !== operation.meaning) card.append(el("p", {}, operation.message));
  if (operation.code === 102) card.append(el("p", { class: "warning" }, word("Not known yet. Do not submit it again.")));
  if (operation.preview?.fields) {
    const open = operation.status === "pending";
    card.append(el("details", { open }, el("summary", {}, word("What changes")), previewTable(operation.preview)));
  }
  const buttons = el("div", { class: "actions" });
  if (operation.link) buttons.append(el("a", { href: operation.link }, word(operation.code === 103 ? "Complete it in the ERP" : "Open the record")));
  for (const [label, handler, primary] of actions) {
    buttons.append(el("button", { type: "button", class: primary ? "primary" : null, onclick: handler }, word(label)));
  }
  if (buttons.childNodes.length) card.append(buttons);
  return card;
}
