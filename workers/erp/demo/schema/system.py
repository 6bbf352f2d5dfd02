"""Companies, users, and who may do what on which form."""

from __future__ import annotations

from sqlalchemy import Index

from workers.erp.demo.schema.columns import flag, ident, system_table, words

company = system_table(
    "sys_company",
    words("sCompanyName", 100, required=True),
    Index("uq_sys_company_tenant", "sBrandsId", "sSubsidiaryId", unique=True),
)

user = system_table(
    "sys_user",
    words("sUserName", 50, required=True),
    words("sDepartment", 50),
    words("sPosition", 50),
    words("sLocale", 10, required=True),
    flag("bInvalid"),
)

grant = system_table(
    "sys_grant",
    ident("sUserId", required=True),
    ident("sFormId", required=True),
    ident("sOpType", required=True),
    Index("uq_sys_grant_once", "sBrandsId", "sSubsidiaryId", "sUserId", "sFormId", "sOpType", unique=True),
)
