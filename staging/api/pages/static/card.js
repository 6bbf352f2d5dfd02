// One operation as a card: what it is, how it stands and why, what changes, who proposed it, its history.
import { ago, badge, busy, el, facts, word } from "./common.js";
import { previewOfPayload, previewView } from "./preview.js";
import { problem } from "./problem.js";
import { titleOf } from "./schema.js";
import { timeline } from "./timeline.js";

const hasPreview = (operation) => Array.isArray(operation.preview?.fields);

// `links`, `actions`: nodes built by the page; `open`: what changes is shown at once.
export function operationCard(operation, schema, { actions = [], open = false, me = null } = {}) {
  const title = el("h3", { id: `title-${operation.id}` }, titleOf(operation, schema));
  return el("article", { id: `op-${operation.id}`, class: `card ${operation.status}`, tabindex: -1, "aria-labelledby": title.id, "data-code": operation.code },
    el("header", {}, title, badge(operation, standing(operation, me))), facts(origin(operation, me)), why(operation, schema),
    el("div", { class: "folds" }, changesOf(operation, schema, open), history(operation)), actions.length ? el("div", { class: "actions" }, actions) : null);
}

// "You" is the maker: what waits for them, or for another's approval, reads otherwise to everybody else.
export function standing(operation, me) {
  if (!me || operation.maker === me.userId) return operation.meaning;
  if (operation.code === 103) return word("waits for {user} in the ERP's own form", { user: operation.maker });
  return operation.code === 104 && me.kind === "person" ? word("waits for your approval") : operation.meaning;
}

function origin(operation, me) {
  return [
    operation.maker === me?.userId ? word("Proposed for you") : word("Proposed for {user}", { user: operation.maker }),
    operation.conversationId && word("Conversation {id}", { id: operation.conversationId }),
    operation.approvedBy && word("Approver {user}", { user: operation.approvedBy }),
    operation.attempt > 0 && word("Attempt {n} of {most}", { n: operation.attempt, most: operation.maxAttempts }),
    operation.executedAt ? ago(operation.executedAt) : ago(operation.createdAt),
  ];
}

function why(operation, schema) {
  if (operation.error) return problem(operation.error, schema);
  if (operation.code === 102) return el("p", { class: "warning" }, word("It is not known yet whether it happened. It is being looked up; do not submit it again."));
  if (operation.status === "fail") return el("p", { class: "problem" }, operation.message);
  return operation.message && operation.message !== operation.meaning && operation.status === "success" ? el("p", { class: "outcome" }, operation.message) : null;
}

export function changesOf(operation, schema, open) {
  const preview = hasPreview(operation) ? operation.preview : previewOfPayload(operation, schema);
  if (!preview.fields.length && !preview.children.length) return null;
  const { node } = previewView({ ...operation, preview }, schema);
  return el("details", { class: "what", open }, el("summary", {}, word("What changes")), node);
}

function history(operation) {
  const place = el("div", {});
  const details = el("details", { class: "history" }, el("summary", {}, word("History")), place);
  details.addEventListener("toggle", () => busy(place, async () => {
    if (!details.open || place.firstChild) return;
    place.append(await timeline(operation), facts(word("Operation {id}", { id: operation.id }), operation.commandType));
  }));
  return details;
}
