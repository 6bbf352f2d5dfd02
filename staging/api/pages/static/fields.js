// An editor for a field, by its type. Numbers stay text from the key to the server: no amount becomes a binary float.
import { el, word } from "./common.js";
import { combobox } from "./combobox.js";
import { isEmpty, lookedUp } from "./schema.js";

let count = 0;

function choices(field, value) {
  const select = el("select", {}, field.required && !isEmpty(value) ? null : el("option", { value: "" }, "—"),
    field.choices.map((c, i) => el("option", { value: i, selected: c.value === value }, c.label)));
  return { input: select, read: () => (select.value === "" ? null : field.choices[Number(select.value)].value) };
}

function yesNo(field, value) {
  const select = el("select", {}, value === null || value === undefined ? el("option", { value: "" }, "—") : null,
    el("option", { value: "1", selected: value === true }, word("yes")), el("option", { value: "0", selected: value === false }, word("no")));
  return { input: select, read: () => (select.value === "" ? null : select.value === "1") };
}

function moment(field, value) {
  const local = isEmpty(value) ? "" : new Date(new Date(value) - new Date(value).getTimezoneOffset() * 60000).toISOString().slice(0, 16);
  const input = el("input", { type: "datetime-local", value: local });
  return { input, read: () => (input.value ? new Date(input.value).toISOString().replace(".000", "") : null) };
}

function typed(attributes, value) {
  const input = el("input", { ...attributes, value: isEmpty(value) ? "" : value });
  return { input, read: () => input.value.trim() || null };
}

function long(field, value) {
  const input = el("textarea", { rows: 2, maxlength: field.length });
  input.value = isEmpty(value) ? "" : value;
  return { input, read: () => input.value || null };
}

function make(formId, path, field, value, text) {
  switch (field.type) {
    case "choice": return choices(field, value);
    case "boolean": return yesNo(field, value);
    case "date": return typed({ type: "date" }, value);
    case "datetime": return moment(field, value);
    case "text": return long(field, value);
    case "reference": return combobox(formId, path, { id: value, text: text || lookedUp(field, value), name: field.label });
    case "integer": return typed({ type: "text", inputmode: "numeric", class: "number" }, value);
    case "decimal": return typed({ type: "text", inputmode: "decimal", class: "number" }, value);
    default: return typed({ type: "text", maxlength: field.length }, value);
  }
}

// `path`: where its choices are ("lines.product"). `labelled`: the label is seen elsewhere, so it only names the input.
export function editor(formId, path, field, value, text, labelled = false) {
  const made = make(formId, path, field, value, text);
  const id = `field-${count += 1}`;
  const { input } = made;
  const before = made.read();
  input.id = id;
  if (field.required) input.setAttribute("aria-required", "true");
  const wrong = el("p", { class: "wrong", id: `${id}-wrong`, hidden: true });
  if (labelled) input.setAttribute("aria-label", field.label);
  const label = labelled ? null : el("label", { for: id }, field.label, field.required ? el("span", { class: "required", "aria-hidden": "true" }, " *") : null);
  return {
    node: el("div", { class: "editor" }, label, made.node ?? input, wrong),
    input,
    value: made.read,
    changed: () => made.read() !== before,
    // What the server said of it, "" to take that back.
    mark(message) {
      wrong.textContent = message;
      wrong.hidden = !message;
      if (message) { input.setAttribute("aria-invalid", "true"); input.setAttribute("aria-describedby", wrong.id); }
      else { input.removeAttribute("aria-invalid"); input.removeAttribute("aria-describedby"); }
    },
  };
}
