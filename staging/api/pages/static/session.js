// Signs in where needed, then runs the page. The token goes into an HttpOnly cookie and nowhere else.
import { api, busy, byId, notice, tell, word } from "./common.js";

export async function withSession(start) {
  const form = byId("sign-in");
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    busy(form, async () => {
      await api("POST", "/session", { token: byId("token").value.trim() }).catch((error) => {
        byId("token").focus();
        notice(error.status === 403 ? word("This token is neither a person's nor an operator's.") : `${error.message}`, true);
        throw new Quiet();
      });
      byId("token").value = "";
      notice("");
      await enter();
    }).catch((error) => { if (!(error instanceof Quiet)) throw error; });
  });
  byId("sign-out").addEventListener("click", async () => {
    try { await api("DELETE", "/session"); location.reload(); } catch (error) { tell(error); }
  });
  const language = byId("language");
  language.href += encodeURIComponent(location.search);

  async function enter() {
    try { await begin(); } finally { byId("main").removeAttribute("aria-busy"); }
  }

  async function begin() {
    let me;
    try { me = await api("GET", "/v1/me"); } catch (error) {
      form.hidden = false;
      if (error.status === 401) byId("token").focus();
      else tell(error);
      return;
    }
    const company = `${me.brandsId}/${me.subsidiaryId}`;
    byId("who").textContent = me.kind === "operator" ? word("{user} (operator) · {company}", { user: me.userId, company }) : `${me.userId} · ${company}`;
    for (const link of document.querySelectorAll("[data-kinds]")) link.hidden = !link.dataset.kinds.split(" ").includes(me.kind);
    form.hidden = true;
    byId("sign-out").hidden = false;
    byId("content").hidden = false;
    await start(me);
  }
  await enter();
}

class Quiet extends Error {}
