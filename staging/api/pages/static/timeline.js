// The events of an operation, oldest first, in words.
import { api, el, operationPath, when, word } from "./common.js";

const VERBS = {
  submit: word("Confirmed"), admit: word("Taken in"), route: word("Routed"), claim: word("A worker began"), finish: word("Ended"),
  back_off: word("Will be tried again"), lose: word("Outcome in doubt"), resolve: word("Looked up in the ledger"), release: word("May go on"),
  expire: word("Expired"), cancel: word("Cancelled"), approve: word("Approved"), reject: word("Rejected"), complete: word("Completed in the ERP"),
  retry: word("Sent again"),
};
const KINDS = { person: "", agent: word("agent"), operator: word("operator"), service: word("ERP"), system: word("system") };

export async function timeline(operation) {
  const events = await api("GET", operationPath(operation.id, "journal"));
  return el("ol", { class: "timeline" }, events.map((event) => {
    const who = [event.actor, KINDS[event.actorKind] ?? event.actorKind].filter(Boolean).join(" · ");
    const said = event.message && event.message !== event.meaning ? event.message : "";
    return el("li", { class: event.status }, el("time", { datetime: event.at }, when(event.at, "medium")),
      el("strong", {}, VERBS[event.verb] ?? event.verb), el("span", {}, `${event.meaning} (${event.code})`),
      event.attempt > 0 ? el("span", { class: "quiet" }, word("attempt {n}", { n: event.attempt })) : null,
      who ? el("span", { class: "quiet" }, who) : null, said ? el("span", { class: "said" }, said) : null);
  }));
}
