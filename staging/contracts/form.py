"""A form (document type) as data: what an entry of ``forms.yaml`` may say. Loading and checks against a live database
are ``workers.erp.forms``; this module is the words only.

Columns and tables named here are the only SQL identifiers the generic adapter ever uses.
"""

from __future__ import annotations

import re
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from staging.contracts.preparation import OpType

# What may be an SQL identifier: letters (any script), digits, underscore; quoted by the dialect all the same.
SqlName = Annotated[str, StringConstraints(pattern=r"^[^\W\d]\w{0,62}$")]
PublicName = Annotated[str, StringConstraints(pattern=r"^[a-z][A-Za-z0-9]{0,62}$")]


class Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Label(Entry):
    zh: str
    en: str

    def text(self, locale: str) -> str:
        return self.zh if locale == "zh" else self.en


class FieldType(StrEnum):
    STRING = "string"
    TEXT = "text"
    INTEGER = "integer"
    DECIMAL = "decimal"
    BOOLEAN = "boolean"
    DATE = "date"
    DATETIME = "datetime"
    CHOICE = "choice"
    REFERENCE = "reference"


class Choice(Entry):
    value: str | int
    label: Label


class Reference(Entry):
    """Points at another form's record: given by id, document number, or exact name; stored as that form's key."""

    form: str
    names: list[PublicName] = Field(
        default_factory=list, description="fields of the other form by which a person names it"
    )
    display: list[PublicName] = Field(default_factory=list, description="what a candidate shows")
    valid_only: bool = Field(default=True, description="invalid (voided) records cannot be chosen")


class Default(Entry):
    """``value``: a constant; or ``now`` / ``today`` / ``maker``; or ``copy`` 'customer.address': from a chosen
    reference."""

    value: Any = None
    now: bool = False
    today: bool = False
    maker: bool = False
    copy_from: str = Field(default="", alias="copy", pattern=r"^$|^[a-z][A-Za-z0-9]*\.[a-z][A-Za-z0-9]*$")
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Computed(Entry):
    """A total worked out by Opstage, never taken from a payload. Exactly one of the two:

    ``product``: multiply fields of the same line, e.g. ``[quantity, price]``;
    ``sum``: add a field over child lines, e.g. ``lines.amount``. Rounded half-up to the field's decimals.
    """

    product: list[PublicName] = Field(default_factory=list)
    sum: str = ""

    @model_validator(mode="after")
    def _one(self) -> Self:
        if bool(self.product) == bool(self.sum):
            raise ValueError("computed takes either product or sum")
        return self


class FormField(Entry):
    """``name`` is public (camelCase), ``column`` is the ERP's. ``length`` in characters, ``decimals`` after
    the point."""

    name: PublicName
    column: SqlName
    label: Label
    type: FieldType
    required: bool = False
    length: int | None = Field(default=None, gt=0)
    precision: int = Field(default=18, gt=0, le=38)
    decimals: int | None = Field(default=None, ge=0, le=10)
    minimum: Decimal | None = None
    maximum: Decimal | None = None
    choices: list[Choice] = Field(default_factory=list)
    reference: Reference | None = None
    default: Default | None = None
    computed: Computed | None = None
    writable: bool = True
    on_update: bool = Field(default=True, description="may be changed after creation")
    sortable: bool = False
    filterable: bool = False

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.type is FieldType.CHOICE) != bool(self.choices):
            raise ValueError(f"{self.name}: choices go with type choice")
        if (self.type is FieldType.REFERENCE) != (self.reference is not None):
            raise ValueError(f"{self.name}: reference goes with type reference")
        if self.type is FieldType.DECIMAL and self.decimals is None:
            raise ValueError(f"{self.name}: a decimal field states its decimals")
        return self

    @property
    def accepts_input(self) -> bool:
        return self.writable and self.computed is None


class Tenancy(Entry):
    brands: SqlName = "sBrandsId"
    subsidiary: SqlName = "sSubsidiaryId"


class Child(Entry):
    """Lines below a master (or below another line). ``parent`` is the column holding the upper row's key."""

    name: PublicName
    label: Label
    table: SqlName
    key: SqlName = "sId"
    parent: SqlName = "sParentId"
    tenant: Tenancy | None = Field(
        default=None, description="columns in which lines repeat the tenant, if they do"
    )
    line_no: SqlName | None = "iOrder"
    min_lines: int = Field(default=0, ge=0)
    max_lines: int = Field(default=500, gt=0)
    fields: list[FormField]
    children: list[Child] = Field(default_factory=list)
    unique: list[PublicName] = Field(default_factory=list, description="no two lines alike in these")


class Stamp(Entry):
    """A state flag (1/0) with who and when, e.g. examined or invalid."""

    column: SqlName
    by: SqlName | None = None
    at: SqlName | None = None


class States(Entry):
    examined: Stamp | None = None
    invalid: Stamp | None = None


_PLACE = re.compile(r"\{(yyyyMMdd|yyyyMM|yyyy|yyMM|yy|seq:\d+)\}")


class NumberRule(Entry):
    """Document number, e.g. ``BJD{yyyyMM}{seq:3}``: gap-free per tenant and period, allocated at execution.

    A sequence that outgrows its width goes on with more digits.
    """

    field: PublicName
    rule: str

    @model_validator(mode="after")
    def _places(self) -> Self:
        if len(re.findall(r"\{seq:\d+\}", self.rule)) != 1 or re.search(r"[{}]", _PLACE.sub("", self.rule)):
            raise ValueError(
                f"number rule {self.rule!r}: one {{seq:N}} and only {{yyyy}} {{yy}} {{yyyyMM}} {{yyMM}} {{yyyyMMdd}}"
            )
        return self


class Approval(Entry):
    """A second person approves: always, or where ``field`` is above ``above`` (same currency as the field)."""

    always: bool = False
    field: PublicName | None = None
    above: Decimal | None = None


class OperationPolicy(Entry):
    """An operation type that is not listed is denied. ``physical``: delete removes rows instead of setting invalid."""

    execution: Literal["auto", "manual"] = "auto"
    approval: Approval | None = None
    physical: bool = False


class WriteBackQuantity(Entry):
    """On generate: add the taken quantity to ``column`` of the source line; refused above ``limit`` (public field)."""

    taken: SqlName
    limit: PublicName


class Generate(Entry):
    """How this form is created from chosen lines of ``source``. Maps are target field → source field."""

    source: str
    source_child: PublicName
    target_child: PublicName
    master: dict[PublicName, PublicName] = Field(default_factory=dict)
    lines: dict[PublicName, PublicName] = Field(default_factory=dict)
    quantity: PublicName = "quantity"
    write_back: WriteBackQuantity | None = None
    source_line: SqlName | None = Field(
        default=None, description="column of the target line keeping the source line's key"
    )
    source_bill: SqlName | None = Field(
        default=None, description="column of the target master keeping the source's key"
    )


class StockEffect(Entry):
    """On examine: lines move stock. ``direction`` +1 inbound, -1 outbound; below zero is refused,
    cancelExamine reverses.

    Where a part of the stock is promised to somebody (``reserved_column``), only a line that fulfils a promise
    (its ``fulfils_column`` is filled) may take it, and uses the promise up; the others leave what is reserved.
    """

    child: PublicName
    product: PublicName
    warehouse: PublicName
    quantity: PublicName
    direction: Literal[1, -1]
    table: SqlName
    key: SqlName = "sId"
    product_column: SqlName
    warehouse_column: SqlName
    quantity_column: SqlName
    reserved_column: SqlName | None = None
    fulfils_column: SqlName | None = None


class Form(Entry):
    id: PublicName | Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,62}$")]
    module: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,30}$")]
    label: Label
    table: SqlName
    key: SqlName = "sId"
    tenant: Tenancy = Tenancy()
    maker: Stamp | None = None
    modified: Stamp | None = None
    states: States = States()
    number: NumberRule | None = None
    title: list[PublicName] = Field(default_factory=list, description="fields that name a record to a person")
    natural_key: list[PublicName] = Field(
        default_factory=list, description="alike in all of these: probably a duplicate"
    )
    operations: dict[OpType, OperationPolicy] = Field(default_factory=dict)
    generate: list[Generate] = Field(default_factory=list)
    stock: StockEffect | None = None
    lock_when_referenced_by: list[str] = Field(
        default_factory=list,
        description="'form.field' or 'form.child.field': cancelExamine and invalid are refused while a valid record"
        " refers to this one",
    )
    fields: list[FormField]
    children: list[Child] = Field(default_factory=list)

    def command_type(self, op_type: str) -> str:
        """``erp.purchase_order.create``: module, form, operation type."""
        return f"{self.module}.{self.id}.{op_type}"

    def field(self, name: str) -> FormField | None:
        return next((f for f in self.fields if f.name == name), None)

    def child(self, name: str) -> Child | None:
        return next((c for c in self.children if c.name == name), None)


class CommandPolicy(Entry):
    """A Python handler registered under a command type, its policy and its input (``handler``: dotted path)."""

    command_type: str
    form: str
    label: Label
    handler: str
    execution: Literal["auto", "manual"] = "auto"
    approval: Approval | None = None


class QueryPolicy(Entry):
    """A domain query in Python (``handler``: dotted path): what a form's own records do not answer.

    ``reads``: the forms whose data it shows; whoever may look at all of them may ask it. ``description`` says when to
    choose it and what its amounts mean.
    """

    name: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,49}$")]
    label: Label
    description: Label
    reads: list[str] = Field(min_length=1)
    handler: str


class Permissions(Entry):
    """Where the ERP keeps grants: a row allows ``user`` the operation on the form; ``*`` in either column means all.

    ``allow_all`` switches the check off, for an ERP that has none of its own.
    """

    table: SqlName | None = None
    tenant: Tenancy = Tenancy()
    user: SqlName = "sUserId"
    form: SqlName = "sFormId"
    op_type: SqlName = "sOpType"
    allow_all: bool = False

    @model_validator(mode="after")
    def _decided(self) -> Self:
        if self.allow_all == (self.table is not None):
            raise ValueError("permissions: name a table or say allow_all: true")
        return self


class Catalogue(Entry):
    """A whole ``forms.yaml``."""

    version: Literal[1] = 1
    permissions: Permissions
    number_table: SqlName = "ai_op_number"
    forms: list[Form]
    commands: list[CommandPolicy] = Field(default_factory=list)
    queries: list[QueryPolicy] = Field(default_factory=list)
