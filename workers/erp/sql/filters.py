"""Typed filters: for each form a pydantic model made from its fields. It checks what is asked and describes, as JSON
Schema, what may be asked.

A field takes what its type allows: a value (equal), a list (any of), ``{"from": …, "to": …}`` (both ends included;
numbers, dates, times), ``{"contains": text}`` (texts, ignoring case), null (empty). References by id, number or name,
as in a payload. ``id`` is the record's key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    RootModel,
    Tag,
    ValidationError,
    WithJsonSchema,
    create_model,
)

from staging.contracts.form import FieldType, Form, FormField, Label
from staging.domain.complaints import bad_value, problems_of
from workers.erp.sql.coerce import BadValue, coerce, read_by, string_value
from workers.erp.sql.command_schema import value_schema
from workers.erp.sql.problems import Problems
from workers.erp.sql.told import told, words

ID = "id"
_MOST_VALUES = 500
_LONGEST = 200
_RANGED = (FieldType.DECIMAL, FieldType.INTEGER, FieldType.DATE, FieldType.DATETIME)
_TEXTUAL = (FieldType.STRING, FieldType.TEXT)
_STRICT = ConfigDict(extra="forbid", frozen=True)
_KEY = FormField(name=ID, column=ID, label=Label(zh="记录 id", en="Record id"), type=FieldType.STRING)
_WAYS = {
    "value": Label(zh="值（等于）", en="a value (equal)"),
    "list": Label(zh="列表（任一）", en="a list (any of)"),
    "range": Label(
        zh="{from, to}（含两端，可缺一端）", en="{from, to} (both included; either may be left out)"
    ),
    "contains": Label(zh="{contains}（包含该文字，不分大小写）", en="{contains} (text in it, ignoring case)"),
    "null": Label(zh="null（空）", en="null (empty)"),
}
_BY = Label(zh="填 id、编号或完整一致的名称", en="by id, document number or exact name")


class Between(BaseModel):
    """Both ends included, JSON-ready values; an end that is None is open."""

    model_config = ConfigDict(**_STRICT, json_schema_extra={"minProperties": 1})
    low: Any = Field(default=None, alias="from")
    high: Any = Field(default=None, alias="to")


class Contains(BaseModel):
    model_config = _STRICT
    text: Annotated[
        str, read_by(partial(string_value, length=_LONGEST)), Field(alias="contains", max_length=_LONGEST)
    ]


@dataclass(frozen=True, slots=True)
class Asked:
    """What ``field`` (None: the id) shall be: within a ``Between``, with the text of a ``Contains``, any of a list of
    JSON-ready values, or None (empty)."""

    field: FormField | None
    wanted: Between | Contains | list[Any] | None


class FormFilter:
    """The filter of one form: the rules of what may be filtered and how, once."""

    def __init__(self, form: Form) -> None:
        self._form = form
        self._fields = [field for field in form.fields if field.filterable and field.name != ID]
        kinds: dict[str, type[BaseModel]] = {}
        takes: dict[str, Any] = {"at_id": (_kind(_KEY, kinds, "Key"), _named(_KEY))}
        for position, field in enumerate(self._fields):
            takes[f"at_{position}"] = (_kind(field, kinds, _kind_name(field)), _named(field))
        self._model: type[BaseModel] = create_model("Filter", __config__=_STRICT, **takes)

    def schema(self, locale: str) -> dict[str, Any]:
        """JSON Schema of a filter, its texts in ``locale``."""
        return told(self._model, locale)

    def read(self, given: Mapping[str, Any], problems: Problems) -> list[Asked]:
        """What of ``given`` can be used; everything else goes to ``problems``."""
        try:
            return list(self._asked(self._model.model_validate(dict(given))))
        except ValidationError as error:
            bad = {str(complaint["loc"][0]) for complaint in error.errors(include_url=False)}
            self._tell(error, problems)
            rest = {name: raw for name, raw in given.items() if name not in bad}
            return list(self._asked(self._model.model_validate(rest)))

    def _asked(self, model: BaseModel) -> Iterator[Asked]:
        for position, field in (("id", None), *enumerate(self._fields)):
            name = f"at_{position}"
            if name in model.model_fields_set:
                root = getattr(model, name).root
                alone = root is None or isinstance(root, list | Between | Contains)
                yield Asked(field, root if alone else [root])

    def _tell(self, error: ValidationError, problems: Problems) -> None:
        for complaint in error.errors(include_url=False):
            # the second step names the way a value was taken, which its sender never wrote
            name, *below = (str(complaint["loc"][0]), *complaint["loc"][2:])
            field = self._form.field(name)
            if complaint["type"] != "extra_forbidden" or below:
                problems.found += problems_of([{**complaint, "loc": (name, *below)}], "filter")
            elif field is None:
                problems.unknown(f"filter.{name[:100]}", name, self._form)
            else:
                zh, en = f"不能按“{field.label.zh}”筛选", f'"{field.label.en}" cannot be filtered by'
                can = ", ".join(f.name for f in self._fields)
                problems.bad(f"filter.{name}", f"{zh}；可筛选：{can}", f"{en}; filterable: {can}")


def _named(field: FormField) -> Any:
    """A field of the model: by its public name, which may be any word, and left out where nothing is asked."""
    return Field(default=None, alias=field.name, json_schema_extra=words(field.label))


def _kind_name(field: FormField) -> str:
    """Fields alike in this take the same filters."""
    match field.type:
        case FieldType.DECIMAL:
            return f"Decimal{field.precision}_{field.decimals}"
        case FieldType.CHOICE:
            return f"Choice_{field.name}"
        case _:
            return field.type.value.title()


def _kind(field: FormField, kinds: dict[str, type[BaseModel]], name: str) -> type[BaseModel]:
    if name not in kinds:
        kinds[name] = _made(field, name)
    return kinds[name]


def _made(field: FormField, name: str) -> type[BaseModel]:
    loose = field.model_copy(update={"minimum": None, "maximum": None, "length": None})
    value = Annotated[Any, read_by(partial(_present, loose)), WithJsonSchema(value_schema(loose))]
    listed = Annotated[list[value], Field(min_length=1, max_length=_MOST_VALUES)]
    takes: dict[str, Any] = {"value": value, "list": listed}
    if field.type in _RANGED:
        takes["range"] = _range(field, name, value)
    if field.type in _TEXTUAL and field is not _KEY:
        takes["contains"] = Contains
    if field is not _KEY:
        takes["null"] = None
    ways = [_WAYS[way] for way in takes]
    zh, en = "；".join(way.zh for way in ways), "; ".join(way.en for way in ways)
    notes = [_BY] if field.reference else []
    if field.choices:
        named = [(f"{c.value} {c.label.zh}", f"{c.value} {c.label.en}") for c in field.choices]
        notes.append(Label(zh="、".join(n[0] for n in named), en=", ".join(n[1] for n in named)))
    note = Label(zh="。".join([zh, *(n.zh for n in notes)]), en=". ".join([en, *(n.en for n in notes)]))
    union = Discriminator(
        _way,
        custom_error_type="bad_value",
        custom_error_message="{en}",
        custom_error_context={"zh": f"应为：{zh}", "en": f"expected: {en}"},
    )
    members = tuple(Annotated[taken, Tag(way)] for way, taken in takes.items())
    either: Any = members[0]
    for member in members[1:]:
        either = either | member
    config = ConfigDict(frozen=True, json_schema_extra=words(None, note))
    return create_model(name, __base__=RootModel[Annotated[either, union]], __config__=config)


def _present(field: FormField, raw: Any) -> Any:
    if raw is None:
        raise BadValue("null 只能单独给出", "null stands alone only")
    return coerce(field, raw)


def _range(field: FormField, name: str, value: Any) -> type[Between]:
    def in_order(range_: Between) -> Between:
        low, high = range_.low, range_.high
        if low is None and high is None:
            raise bad_value({"zh": "from 与 to 至少给一个", "en": "give from, to or both"})
        if low is not None and high is not None and _comparable(field, low) > _comparable(field, high):
            raise bad_value({"zh": "from 大于 to", "en": "from is above to"})
        return range_

    made = create_model(
        f"{name}Range",
        __base__=Between,
        low=(value | None, Field(default=None, alias="from")),
        high=(value | None, Field(default=None, alias="to")),
    )
    return Annotated[made, AfterValidator(in_order)]  # type: ignore[return-value]


def _comparable(field: FormField, value: Any) -> Any:
    match field.type:
        case FieldType.DECIMAL:
            return Decimal(value)
        case FieldType.DATETIME:
            return datetime.fromisoformat(value)
        case _:
            return value


def _way(raw: Any) -> str | None:
    match raw:
        case None:
            return "null"
        case list():
            return "list"
        case {"contains": _}:
            return "contains"
        case dict():
            return "range" if raw and raw.keys() <= {"from", "to"} else None
        case _:
            return "value"
