// A form's schema in the reader's language: labels by path, texts of values. Asked for once per form and page.
import { api, grouped, locale, when, word } from "./common.js";

const schemas = new Map();
const names = new Map();

// The schema, or null where this user may not see the form (an operator, an approver of a form unknown to them).
export function formSchema(formId) {
  if (!schemas.has(formId)) {
    schemas.set(formId, api("GET", `/v1/forms/${encodeURIComponent(formId)}`).catch((error) => {
      if (![403, 404].includes(error.status)) schemas.delete(formId);
      return null;
    }));
  }
  return schemas.get(formId);
}

export const fieldOf = (level, name) => level?.fields.find((f) => f.name === name) ?? null;
export const childOf = (level, name) => level?.children.find((c) => c.name === name) ?? null;

// "parts[1].tiers[0].price" -> the field, and "Parts 2 Price tiers 1 Price" (indexes count from 0 in a path).
export function atPath(schema, path) {
  let level = schema;
  const words = [];
  for (const [, name, index] of String(path).matchAll(/([^.[\]]+)(?:\[([^\]]*)\])?/g)) {
    const child = childOf(level, name);
    if (!child) return { field: fieldOf(level, name), label: [...words, fieldOf(level, name)?.label ?? name].join(" ") };
    level = child;
    words.push(/^\d+$/.test(index ?? "") ? `${child.label} ${Number(index) + 1}` : child.label);
  }
  return { field: null, label: words.join(" ") || String(path) };
}

const OPERATIONS = {
  create: word("Create"), update: word("Update"), delete: word("Delete"), examine: word("Examine"), cancelExamine: word("Cancel examination"),
  invalid: word("Make invalid"), cancelInvalid: word("Make valid again"), generate: word("Generate"),
};

export const commandOf = (schema, commandType) => schema?.opTypes.find((o) => o.commandType === commandType && o.inputSchema) ?? null;

// How a new record will be called: what its form's title fields say.
function named(fields, schema) {
  const parts = (schema?.title ?? fields.slice(0, 1).map((c) => c.field)).map((name) => fields.find((c) => c.field === name)).filter(Boolean);
  return parts.map((c) => shown(c.type, fieldOf(schema, c.field), c.new, c.newText)).filter(Boolean).join(" ");
}

// The values of a row that another program wrote.
function plain(payload) {
  const known = payload !== null && typeof payload === "object";
  return known ? Object.entries(payload).map(([field, value]) => ({ field, type: typeof value, new: value })) : [];
}

// What it is, in the reader's language where the form is known to them, else as it was said to whoever proposed it.
export function titleOf(subject, schema) {
  const { preview, formId, opType, commandType } = subject;
  const record = preview?.recordLabel || subject.targetBillId || named(preview?.fields ?? plain(subject.payload), schema);
  const command = commandOf(schema, commandType);
  const verb = OPERATIONS[opType];
  if (command) return `${command.label} ${record}`.trim();
  if (schema && verb) return [word("{operation} {form}", { operation: verb, form: inside(schema.label) }), record].join(" ").trim();
  const said = preview?.title || `${formId} ${opType}`;
  return said.includes(record) ? said : `${said} ${record}`;
}

// A label within an English sentence.
const inside = (label) => (locale === "en" ? label.charAt(0).toLowerCase() + label.slice(1) : label);

export const isEmpty = (value) => value === null || value === undefined || value === "";

// A value as a person reads it. `text`: what the server made of it, in the language of whoever prepared it.
export function shown(type, field, value, text) {
  if (isEmpty(value)) return text ?? "";
  if (type === "boolean") return value === true || value === 1 ? word("yes") : word("no");
  const choice = field?.choices?.find((c) => c.value === value);
  if (choice) return choice.label;
  if (type === "decimal") return grouped(value);
  if (type === "datetime") return when(value);
  if (text) return text;
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

// The same where no text came along: a reference is looked up by its id.
export async function lookedUp(field, value) {
  if (field?.type !== "reference" || typeof value !== "string" || value === "") return shown(field?.type ?? typeof value, field, value);
  const key = `${field.reference.form}/records/${encodeURIComponent(value)}`;
  if (!names.has(key)) names.set(key, api("GET", `/v1/forms/${key}`).then((r) => r.label, () => value));
  return names.get(key);
}
