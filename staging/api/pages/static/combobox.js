// Search in a reference field's choices: type, go down the list, take one. ARIA's editable combobox with a list.
import { api, el, word } from "./common.js";

const WAIT_MS = 200;
let count = 0;

// `text`: how the value with `id` is called, or a promise of it. `read()` gives the chosen id, the typed text where none was chosen (the server takes numbers and names), or null.
export function combobox(formId, path, { id, text, name }) {
  const listId = `list-${count += 1}`;
  let chosen = id ?? null, active = -1, timer = null, asked = 0;
  const list = el("ul", { id: listId, role: "listbox", class: "options", hidden: true, "aria-label": name });
  const input = el("input", { type: "text", role: "combobox", autocomplete: "off", spellcheck: "false", "aria-autocomplete": "list",
    "aria-expanded": "false", "aria-controls": listId, placeholder: word("Search…"), value: typeof text === "string" ? text : id ?? "",
    oninput: () => { chosen = null; search(); }, onkeydown: keys, onblur: close, onclick: search });

  if (typeof text !== "string") text.then((found) => { if (chosen !== null) input.value = found; });

  function search() {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      const mine = (asked += 1);
      const words = chosen === null ? input.value : "";
      const address = `/v1/forms/${encodeURIComponent(formId)}/fields/${encodeURIComponent(path)}/options?q=${encodeURIComponent(words.slice(0, 100))}`;
      let found;
      try { found = (await api("GET", address)).items; } catch (error) { show([], error.message); return; }
      if (mine === asked && document.activeElement === input) show(found, word("Nothing found"));
    }, WAIT_MS);
  }

  function show(items, otherwise) {
    active = -1;
    input.removeAttribute("aria-activedescendant");
    const rows = items.map((item, i) => el("li", { id: `${listId}-${i}`, role: "option", "aria-selected": "false", "data-id": item.id,
      onmousedown: (event) => { event.preventDefault(); take(event.currentTarget); } }, item.label));
    list.replaceChildren(...(rows.length ? rows : [el("li", { class: "quiet", role: "presentation" }, otherwise)]));
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
  }

  function close() {
    clearTimeout(timer);
    asked += 1;
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
  }

  function take(option) {
    chosen = option.dataset.id;
    input.value = option.textContent;
    input.dispatchEvent(new Event("change", { bubbles: true }));
    close();
  }

  function keys(event) {
    const rows = [...list.querySelectorAll("[role=option]")];
    if (event.key === "Escape" && !list.hidden) { event.preventDefault(); event.stopPropagation(); close(); return; }
    if (event.key === "Enter" && !list.hidden && rows[active]) { event.preventDefault(); take(rows[active]); return; }
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    event.preventDefault();
    if (list.hidden) { search(); return; }
    if (!rows.length) return;
    active = (active + (event.key === "ArrowDown" ? 1 : -1) + rows.length) % rows.length;
    rows.forEach((row, i) => row.setAttribute("aria-selected", String(i === active)));
    rows[active].scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", rows[active].id);
  }

  return { node: el("div", { class: "combobox" }, input, list), input, read: () => chosen ?? (input.value.trim() || null) };
}
