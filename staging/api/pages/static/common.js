// What both pages share: the API, words, safe DOM building. Text from ERP and payload only ever becomes text nodes.
export const t = JSON.parse(document.getElementById("texts").textContent);
export const locale = document.body.dataset.locale;
export const word = (id) => t[id] ?? id;
export const byId = (id) => document.getElementById(id);

export function el(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value === true) node.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(key, String(value));
  }
  node.append(...children.filter((c) => c !== null && c !== undefined).map((c) => (c instanceof Node ? c : String(c))));
  return node;
}

export class ApiError extends Error {
  constructor(status, body) {
    super(body?.error?.message ?? `HTTP ${status}`);
    this.status = status;
    this.body = body?.error ?? {};
  }
}

export async function api(method, path, body) {
  const options = { method, credentials: "same-origin", headers: {} };
  if (body !== undefined) {
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  const response = await fetch(path, options);
  if (response.status === 204) return null;
  const parsed = await response.json().catch(() => null);
  if (!response.ok) throw new ApiError(response.status, parsed);
  return parsed;
}

export function notice(text, bad = false) {
  const place = byId("notice");
  place.textContent = text;
  place.className = bad ? "problem" : "";
}

export function tell(error) {
  const hint = error.body?.hint ? ` ${error.body.hint}` : "";
  notice(error.message + hint, true);
}

export function when(iso) {
  if (!iso) return "";
  return new Date(iso).toLocaleString(locale === "zh" ? "zh-CN" : "en-GB", { dateStyle: "short", timeStyle: "short" });
}

export function badge(operation) {
  return el("span", { class: `badge ${operation.status}` }, `${operation.code ?? ""} ${operation.meaning}`.trim());
}

// Signs in where needed, then runs `start`. The token goes into an HttpOnly cookie and nowhere else.
export async function withSession(start) {
  const form = byId("sign-in");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      await api("POST", "/session", { token: byId("token").value.trim() });
      byId("token").value = "";
      notice("");
      await enter();
    } catch (error) { tell(error); }
  });
  byId("sign-out").addEventListener("click", async () => { await api("DELETE", "/session"); location.reload(); });
  async function enter() {
    try {
      const me = await api("GET", "/v1/me");
      byId("who").textContent = `${me.userId} · ${me.brandsId}/${me.subsidiaryId}`;
      form.hidden = true;
      byId("sign-out").hidden = false;
      byId("lists").hidden = false;
      await start(me);
    } catch (error) {
      form.hidden = false;
      if (error.status !== 401) tell(error);
      else byId("token").focus();
    }
  }
  await enter();
}
