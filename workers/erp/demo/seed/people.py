"""Companies, users and grants: who may do what. Users differ on purpose, so that every refusal can be shown."""

from __future__ import annotations

from collections.abc import Mapping

from workers.erp.demo.schema import system
from workers.erp.demo.seed.rows import TenantRows

COMPANIES = {"B001": "华彩印刷包装有限公司", "B002": "星河文创礼品有限公司"}

_EDIT = ("create", "update", "invalid", "cancelInvalid")
_EXAMINE = ("examine", "cancelExamine")
_EVERYTHING: Mapping[str, tuple[str, ...]] = {"*": ("*",)}
_SALES: Mapping[str, tuple[str, ...]] = {
    "*": ("read",),
    "quotation": (*_EDIT, *_EXAMINE, "delete"),
    "sales_order": ("create", "cancel", *_EXAMINE),
    "customer": ("create", "update"),
}

# user → (name, department, position, grants by form)
USERS: Mapping[str, Mapping[str, tuple[str, str, str, Mapping[str, tuple[str, ...]]]]] = {
    "B001": {
        "u-lin": ("林晓梅", "销售部", "销售经理", _SALES),
        "u-chen": (
            *("陈志强", "采购部", "采购员"),
            {
                "*": ("read",),
                "purchase_requisition": (*_EDIT, *_EXAMINE, "delete"),
                "purchase_order": (*_EDIT, *_EXAMINE, "delete", "generate"),
                "outsource_order": (*_EDIT, *_EXAMINE),
                "supplier": ("create", "update", "invalid"),
            },
        ),
        "u-wang": (
            *("王建国", "仓储部", "仓库管理员"),
            {
                "*": ("read",),
                "stock_inbound": (*_EDIT, *_EXAMINE, "generate"),
                "stock_outbound": (*_EDIT, *_EXAMINE, "generate"),
                "stock_adjustment": ("create",),
            },
        ),
        "u-liu": (
            *("刘洋", "电商部", "运营"),
            {
                "*": ("read",),
                "product_listing": ("create", "on", "off"),
                "digital_human_project": (*_EDIT, "delete", "setTitle"),
                "product": ("update",),
            },
        ),
        "u-zhao": ("赵敏", "总经办", "总经理", _EVERYTHING),
        "u-qian": (
            *("钱立", "财务部", "财务经理"),
            {"*": ("read",), "purchase_order": ("approve", *_EXAMINE), "supplier": ("approve",)},
        ),
        "u-sun": ("孙丽", "客服部", "客服", {"*": ("read",)}),
        "u-zhou": ("周宁", "人事部", "实习生", {}),
    },
    "B002": {
        "u-gao": ("高峰", "总经办", "总经理", _EVERYTHING),
        "u-he": ("何静", "销售部", "销售员", _SALES),
    },
}


def add_people(tenant: TenantRows) -> None:
    """The tenant's company, users and grants."""
    company = COMPANIES[tenant.brands]
    tenant.row(system.company, "company", sCompanyName=company)
    for user_id, (name, department, position, grants) in USERS[tenant.brands].items():
        tenant.rows.insert(
            system.user,
            sId=user_id,
            sBrandsId=tenant.brands,
            sSubsidiaryId=tenant.subsidiary,
            sUserName=name,
            sDepartment=department,
            sPosition=position,
            sLocale="zh",
            bInvalid=0,
        )
        for form, operations in grants.items():
            for operation in operations:
                tenant.row(system.grant, "grant", sUserId=user_id, sFormId=form, sOpType=operation)
