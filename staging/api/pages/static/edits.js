// What a person changes on a card, as the API takes it: field -> value, and for a changed line all lines of its child.
import { editor } from "./fields.js";
import { childOf, commandOf, fieldOf, isEmpty } from "./schema.js";

const TAKES_VALUES = new Set(["create", "update", "generate"]);

// Which fields may be set at all; of a command: those of its input.
class Level {
  constructor(schema, properties, definitions, isNew) {
    Object.assign(this, { schema, properties, definitions, isNew });
  }

  below(child, isNew) {
    const reference = this.properties?.[child]?.items?.$ref ?? "";
    const properties = this.properties && (this.definitions?.[reference.replace("#/$defs/", "")]?.properties ?? {});
    return new Level(childOf(this.schema, child), properties, this.definitions, isNew);
  }

  settable(name) {
    const field = fieldOf(this.schema, name);
    if (!field) return null;
    if (this.properties) return name in this.properties && field.writable ? field : null;
    return (this.isNew ? field.writable : field.onUpdate) ? field : null;
  }
}

// The lines of one child, in the order in which they are sent; `path` is where they are in what is sent.
class Lines {
  constructor(owner, section, level, path, options) {
    Object.assign(this, { owner, section, level, path, options, kept: [] });
  }

  line(line) {
    if (line.action === "keep") return null;
    const made = new Line(this.owner, line, this.level.below(this.section.child, line.action === "add"),
      `${this.path}[${this.kept.length}]`, this.options);
    this.kept.push(made);
    return line.action === "remove" ? null : made;
  }

  changed() { return this.kept.some((line) => line.changed()); }
  value() { return this.kept.map((line) => line.value()); }
}

class Line {
  constructor(owner, line, level, path, options) {
    Object.assign(this, { owner, line, level, path, options, editors: new Map(), sections: [] });
  }

  lines(section) {
    const lines = new Lines(this.owner, section, this.level, `${this.path}.${section.child}`, `${this.options}.${section.child}`);
    this.sections.push(lines);
    return lines;
  }

  field(change) {
    const field = this.level.settable(change.field);
    if (!field) return null;
    if (this.line.action === "change" && change.old === change.new && !field.onUpdate) return null;
    const made = this.owner.make(field, change, `${this.path}.${change.field}`, `${this.options}.${change.field}`, true);
    this.editors.set(change.field, made);
    return made;
  }

  changed() { return [...this.editors.values()].some((e) => e.changed()) || this.sections.some((s) => s.changed()); }

  value() {
    if (this.line.action === "remove") return { id: this.line.lineId, remove: true };
    const value = this.line.action === "change" ? { id: this.line.lineId } : {};
    for (const change of this.line.fields) {
      if (!this.level.settable(change.field)) continue;
      const own = this.editors.get(change.field);
      const next = own ? own.value() : change.new;
      const differs = this.line.action === "add" ? !isEmpty(next) : own?.changed() || change.old !== change.new;
      if (differs) value[change.field] = next;
    }
    for (const section of this.sections) if (section.kept.length) value[section.section.child] = section.value();
    return value;
  }
}

export class Edits {
  constructor(subject, schema) {
    const { preview, formId, opType, commandType } = subject;
    const input = commandOf(schema, commandType)?.inputSchema;
    this.formId = formId;
    this.preview = preview;
    this.isNew = !preview.recordId;
    this.level = new Level(schema, input?.properties ?? null, input?.$defs, this.isNew);
    this.possible = schema !== null && (Boolean(input) || TAKES_VALUES.has(opType));
    this.editors = new Map();
    this.sections = [];
    this.byPath = new Map();
  }

  make(field, change, path, options, labelled) {
    const made = editor(this.formId, options, field, change?.new ?? null, change?.newText ?? "", labelled);
    this.byPath.set(path, made);
    return made;
  }

  field(change, labelled = false) {
    const field = this.possible && this.level.settable(change.field);
    if (!field) return null;
    const made = this.make(field, change, change.field, change.field, labelled);
    this.editors.set(change.field, made);
    return made;
  }

  emptyFields() {
    if (!this.possible || !this.isNew) return [];
    const there = new Set(this.preview.fields.map((c) => c.field));
    return this.level.schema.fields.filter((f) => !there.has(f.name) && this.level.settable(f.name))
      .map((f) => this.field({ field: f.name, new: null }));
  }

  lines(section) {
    const lines = this.possible ? new Lines(this, section, this.level, section.child, section.child) : null;
    if (lines) this.sections.push(lines);
    return lines;
  }

  any() { return this.byPath.size > 0; }

  // Empty where nothing was changed.
  value() {
    const value = {};
    for (const [name, own] of this.editors) if (own.changed()) value[name] = own.value();
    for (const lines of this.sections) if (lines.changed()) value[lines.section.child] = lines.value();
    return value;
  }

  // Shows each complaint at its field; gives those that have none.
  mark(details) {
    const rest = [];
    for (const made of this.byPath.values()) made.mark("");
    for (const detail of details ?? []) {
      const made = this.byPath.get(detail.field);
      if (made) made.mark(detail.message);
      else rest.push(detail);
    }
    [...this.byPath.values()].find((made) => made.input.hasAttribute("aria-invalid"))?.input.focus();
    return rest;
  }
}
