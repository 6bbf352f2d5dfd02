"""Guesses at what columns of an unknown ERP are for, by how such columns are usually called."""

from __future__ import annotations

import re
from collections.abc import Iterable

_PREFIX = re.compile(r"^[sdbitf](?=[A-Z])")  # sCustomerName, dAmount, bCheck, iOrder, tCreateDate
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")

# The first name that is there wins; names are compared without underscores and case.
KEY = ("sid", "id", "guid", "uuid")
BRANDS = ("sbrandsid", "brandsid", "companyid", "tenantid", "orgid")
SUBSIDIARY = ("ssubsidiaryid", "subsidiaryid", "branchid", "deptid", "siteid")
PARENT = ("sparentid", "parentid", "masterid", "headerid")
LINE_NO = ("iorder", "lineno", "seq", "sortno", "rowno")
MAKER = ("smakeperson", "makeperson", "createdby", "creator", "createuser")
MADE_AT = ("tcreatedate", "createdat", "createdate", "createtime")
MODIFIER = ("smodifyperson", "modifyperson", "updatedby", "updateuser", "modifier")
MODIFIED_AT = ("tmodifydate", "updatedat", "updatedate", "updatetime")
EXAMINED = ("bcheck", "checked", "examined", "approved", "isapproved", "audited")
EXAMINED_BY = ("scheckperson", "checkperson", "checkedby", "approvedby", "auditor")
EXAMINED_AT = ("tcheckdate", "checkdate", "checkedat", "approvedat", "audittime")
INVALID = ("binvalid", "invalid", "voided", "isvoid", "deleted", "isdeleted")
INVALID_BY = ("sinvalidperson", "invalidperson", "voidedby", "deletedby")
INVALID_AT = ("tinvaliddate", "invaliddate", "voidedat", "deletedat")
NUMBER = ("sbillno", "billno", "documentno", "docno", "orderno", "number", "code")


def first(names: Iterable[str], wanted: tuple[str, ...]) -> str | None:
    """The column among ``names`` that is called most like the first of ``wanted``."""
    plain = {name.replace("_", "").lower(): name for name in names}
    return next((plain[w] for w in wanted if w in plain), None)


def public_name(column: str, taken: set[str]) -> str:
    """A camelCase name for ``column`` that is not in ``taken`` (which it joins): sCustomerName → customerName."""
    words = _WORD.findall(_PREFIX.sub("", column))
    name = "".join([words[0].lower(), *(w.capitalize() for w in words[1:])]) if words else "field"
    name = name if name[0].isalpha() else f"field{name}"
    base, number = name, 2
    while name in taken or name in ("id", "remove"):
        name, number = f"{base}{number}", number + 1
    taken.add(name)
    return name


def refers_to(column: str, tables: Iterable[str]) -> str | None:
    """The one table among ``tables`` that ``column`` seems to point at by its name: sCustomerId → ele_customer."""
    stem = _plain(column)
    if not stem.endswith("id") or len(stem) < 5:
        return None
    found = [table for table in tables if table.replace("_", "").lower().endswith(stem.removesuffix("id"))]
    return found[0] if len(found) == 1 else None


def names_record(column: str, table: str) -> bool:
    """Whether ``column`` is what people call a record of ``table`` by: sCustomerNo, customer_name, code, title."""
    plain, of = _plain(column), table.replace("_", "").lower()
    ending = next((e for e in ("no", "code", "name", "title") if plain.endswith(e)), "")
    return bool(ending) and of.endswith(plain.removesuffix(ending))


def is_flag(column: str) -> bool:
    """Whether ``column`` says by its name that it holds yes or no: bGift, is_gift."""
    return bool(re.match(r"b[A-Z]|is_?[A-Z]|is_", column))


def _plain(column: str) -> str:
    return _PREFIX.sub("", column).replace("_", "").lower()


def words(column: str) -> str:
    """An English label for ``column``: sCustomerName → Customer name."""
    found = _WORD.findall(_PREFIX.sub("", column))
    return " ".join(found).capitalize() if found else column


def form_id(table: str) -> str:
    """A form id for ``table``: letters, digits and underscores, beginning with a letter."""
    plain = re.sub(r"[^a-z0-9_]", "_", table.lower()).strip("_")
    return plain if plain[:1].isalpha() else f"form_{plain}"
