// A change that waits for its yes: shown whole, may be edited, confirmed, dropped, and prepared again when things moved.
import { ApiError, api, button, el, facts, notice, preparationPath, when, word } from "./common.js";
import { previewView } from "./preview.js";
import { problem } from "./problem.js";
import { formSchema, titleOf } from "./schema.js";

const AGAIN = new Set(["version_conflict", "state_conflict"]);

// Puts the card first in `place`. `done(operations)` after a confirm, `gone()` when there is no card any more.
export async function showPreparation(preparation, place, { done, gone }) {
  const schemas = await Promise.all(preparation.items.map((item) => formSchema(item.preview.formId)));
  const id = preparation.preparationId;
  let views = [];
  const body = el("div", {}), trouble = el("div", {}), actions = el("div", { class: "actions" });
  const heading = el("h3", { id: `title-${id}` }, headline());
  const card = el("article", { class: "card preparation", id: `prep-${id}`, tabindex: -1, "aria-labelledby": heading.id },
    el("header", {}, heading, el("span", { class: "badge pending" }, word("Waits for your yes"))),
    facts(word("Nothing has changed in the ERP yet."), word("Proposed for you"),
      preparation.conversationId && word("Conversation {id}", { id: preparation.conversationId }),
      word("Valid until {time}", { time: when(preparation.expiresAt) }), ...follows()),
    trouble, el("form", { novalidate: true, onsubmit: (event) => event.preventDefault() }, body, actions));

  function subject(i) {
    const { preview, commandType } = preparation.items[i];
    return { preview, formId: preview.formId, opType: preview.opType, commandType };
  }

  function headline() {
    const first = titleOf(subject(0), schemas[0]);
    return preparation.items.length === 1 ? first : word("{n} operations", { n: preparation.items.length });
  }

  function follows() {
    const some = (test) => preparation.items.some(test);
    return [
      some((item) => item.requiresApproval) && word("After your yes a second person has to approve it."),
      some((item) => !item.autoExecute) && word("After your yes you complete it in the ERP's own form."),
    ];
  }

  function show(edit) {
    views = preparation.items.map((_, i) => previewView(subject(i), schemas[i], { edit }));
    const parts = views.map(({ node }, i) => (views.length === 1 ? node
      : el("section", { class: "item" }, el("h4", {}, `${i + 1}. ${titleOf(subject(i), schemas[i])}`), node)));
    body.replaceChildren(...parts);
    const twin = preparation.items.some((item) => item.preview.warnings.some((w) => w.code === "possible_duplicate"));
    const yes = twin ? word("Submit anyway") : word("Confirm");
    actions.replaceChildren(...(edit
      ? [button(word("Confirm with my changes"), () => confirm(), "primary"), button(word("Check first"), () => restage()), button(word("Back"), () => { clear(); show(false); })]
      : [button(yes, () => confirm(), "primary"), canEdit() ? button(word("Edit values"), () => { clear(); show(true); focusFirst(); }) : null, button(word("Drop"), drop)].filter(Boolean)));
  }

  const canEdit = () => preparation.items.some((_, i) => previewView(subject(i), schemas[i], { edit: true }).edits.any());
  const focusFirst = () => body.querySelector("input, select, textarea")?.focus();
  const clear = () => trouble.replaceChildren();

  // {edits}, {itemEdits} for several, or nothing.
  function asked(extra = {}) {
    const edits = views.map((view, i) => [String(i), view.edits?.value() ?? {}]).filter(([, e]) => Object.keys(e).length);
    if (!edits.length) return extra;
    return views.length === 1 ? { edits: edits[0][1], ...extra } : { itemEdits: Object.fromEntries(edits), ...extra };
  }

  async function confirm(extra) {
    await attempt(async () => {
      const { operations } = await api("POST", preparationPath(id, "confirm"), asked(extra));
      card.remove();
      gone();
      await done(operations);
    });
  }

  async function restage(extra) {
    await attempt(async () => {
      const next = await api("POST", preparationPath(id, "restage"), asked(extra));
      const shown = await showPreparation(next, place, { done, gone });
      card.remove();
      notice(word("Prepared again. Look at it before you confirm."));
      shown.focus();
    });
  }

  async function drop() {
    await api("DELETE", preparationPath(id));
    card.remove();
    gone();
    notice(word("Dropped. Nothing was changed."));
  }

  async function attempt(work) {
    clear();
    notice("");
    try { await work(); } catch (error) {
      if (!(error instanceof ApiError) || error.status === 401) throw error;
      explain(error.body);
    }
  }

  function explain(error) {
    let rest = error.details;
    if (rest) for (const view of views) rest = view.edits?.mark(rest) ?? rest;
    const ways = [];
    if (AGAIN.has(error.code)) {
      ways.push(button(word("Prepare again as things are now"), () => restage(), "primary"));
      actions.replaceChildren(button(word("Drop"), drop)); // a second yes to the same card would be refused again
    }
    if (error.code === "possible_duplicate") ways.push(button(word("Submit anyway"), () => confirm({ allowDuplicate: true }), "primary"));
    if (error.code === "preparation_not_found_or_expired") actions.replaceChildren();
    const told = problem({ ...error, details: rest?.length ? rest : null, message: error.details && !rest?.length ? word("Some values do not fit. They are marked.") : error.message }, schemas[0], ways);
    trouble.replaceChildren(told);
    if (!error.details) { told.tabIndex = -1; told.focus(); }
  }

  show(false);
  place.prepend(card);
  return card;
}
