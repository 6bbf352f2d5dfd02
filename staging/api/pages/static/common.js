// What all pages share: words, safe DOM building, the API. Text of ERP and payload only ever becomes text nodes.
const texts = JSON.parse(document.getElementById("texts").textContent);
export const locale = document.body.dataset.locale;
const tag = locale === "zh" ? "zh-CN" : "en-GB";
export const byId = (id) => document.getElementById(id);

// The English text is the id; `{name}` takes values. Only ever called with literals, so that none escapes translation.
export function word(id, values = {}) {
  return (texts[id] ?? id).replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "");
}

// Attributes: "on…" adds a listener, true/false set or leave out. Children that are no nodes become text.
export function el(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value === true) node.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(key, String(value));
  }
  node.append(...children.flat().filter((c) => c !== null && c !== undefined && c !== false)
    .map((c) => (c instanceof Node ? c : String(c))));
  return node;
}

export function button(label, handler, kind = "") {
  return el("button", { type: "button", class: kind || null, onclick: (event) => busy(event.currentTarget, handler) }, label);
}

// One click, one call: while the handler runs, the button (and its form) does not answer again.
export async function busy(node, handler) {
  if (node.getAttribute("aria-busy") === "true") return;
  node.setAttribute("aria-busy", "true");
  try { await handler(); } catch (error) { tell(error); } finally { node.removeAttribute("aria-busy"); }
}

export class ApiError extends Error {
  constructor(status, body, retryAfter) {
    super(body?.error?.message ?? `HTTP ${status}`);
    this.status = status;
    this.body = body?.error ?? { message: this.message };
    this.retryAfterMs = 1000 * (Number(retryAfter) || 0);
  }
}

export async function api(method, path, body) {
  const options = { method, credentials: "same-origin", headers: {} };
  if (body !== undefined) {
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  let response;
  try { response = await fetch(path, options); }
  catch { throw new ApiError(0, { error: { message: word("The server cannot be reached."), hint: word("Nothing submitted is lost. Try again in a moment.") } }); }
  if (response.status === 204) return null;
  const parsed = await response.json().catch(() => null);
  if (!response.ok) throw new ApiError(response.status, parsed, response.headers.get("Retry-After"));
  return parsed;
}

export const operationPath = (id, verb = "") => `/v1/operations/${encodeURIComponent(id)}${verb && `/${verb}`}`;
export const preparationPath = (id, verb = "") => `/v1/preparations/${encodeURIComponent(id)}${verb && `/${verb}`}`;

export function notice(text, bad = false) {
  const place = byId("notice");
  place.textContent = text;
  place.className = bad ? "problem" : "told";
}

export function tell(error) {
  if (!(error instanceof ApiError)) throw error;
  if (error.status === 401) { location.reload(); return; }
  notice([error.message, error.body.hint].filter(Boolean).join(" "), true);
}

export function when(iso, style = "short") {
  return iso ? new Date(iso).toLocaleString(tag, { dateStyle: style === "short" ? "medium" : style, timeStyle: style }) : "";
}

// "12 minutes ago"; the exact time is its title.
export function ago(iso) {
  if (!iso) return null;
  const seconds = (new Date(iso) - Date.now()) / 1000;
  const steps = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];
  const [unit, size] = steps.find(([, s]) => Math.abs(seconds) >= s) ?? steps[3];
  const text = new Intl.RelativeTimeFormat(tag, { numeric: "auto" }).format(Math.round(seconds / size), unit);
  return el("time", { datetime: iso, title: when(iso, "medium") }, text);
}

// Digits in groups, by text alone: an amount never becomes a binary float.
export function grouped(text) {
  const [whole, ...rest] = String(text).split(".");
  return [whole.replace(/\B(?=(\d{3})+(?!\d))/g, ","), ...rest].join(".");
}

export function badge(operation, meaning = operation.meaning) {
  return el("span", { class: `badge ${operation.status}` }, meaning,
    operation.code === null ? null : el("span", { class: "code" }, operation.code));
}

// Facts in a row, those that are there.
export function facts(...parts) {
  const kept = parts.flat().filter(Boolean);
  return el("p", { class: "facts" }, kept.map((part) => el("span", {}, part)));
}

// A question in a dialog of our own; null where the person changed their mind.
function ask(title, label, yes) {
  return new Promise((resolve) => {
    const input = el("textarea", { id: "ask-text", maxlength: 500, rows: 3 });
    const dialog = el("dialog", { class: "ask", "aria-labelledby": "ask-title" }, el("form", { method: "dialog" },
      el("h2", { id: "ask-title" }, title), el("label", { for: "ask-text" }, label), input,
      el("div", { class: "actions" }, el("button", { value: "yes", class: "danger" }, yes), el("button", { value: "" }, word("Back")))));
    dialog.addEventListener("close", () => { resolve(dialog.returnValue === "yes" ? input.value.trim() : null); dialog.remove(); });
    document.body.append(dialog);
    dialog.showModal();
    input.focus();
  });
}

// Runs `work` with the reason, unless the person changed their mind.
export async function withReason(title, yes, work) {
  const reason = await ask(title, word("Why? The reason is kept and shown."), yes);
  if (reason !== null) await work({ reason });
}
