"""Customers, suppliers, warehouses, and digital-human projects."""

from __future__ import annotations

from sqlalchemy import Index

from workers.erp.demo.schema.columns import AMOUNT, at_least, exact, ident, master_table, memo, whole, words

customer = master_table(
    "elecustomer",
    "sCustomerNo",
    words("sCustomerName", 100, required=True),
    words("sCustomerType", 20, required=True),
    words("sContact", 50),
    words("sPhone", 30),
    words("sCity", 30),
    words("sAddress", 200),
    whole("iPaymentDays"),
    exact("dCreditLimit", AMOUNT),
    memo(),
    Index("ix_elecustomer_name", "sBrandsId", "sSubsidiaryId", "sCustomerName"),
)

supplier = master_table(
    "elesupplier",
    "sSupplierNo",
    words("sSupplierName", 100, required=True),
    words("sSupplierType", 20, required=True),
    words("sContact", 50),
    words("sPhone", 30),
    words("sAddress", 200),
    whole("iPaymentDays"),
    words("sBankName", 100),
    words("sBankAccount", 40),
    memo(),
    Index("ix_elesupplier_name", "sBrandsId", "sSubsidiaryId", "sSupplierName"),
)

warehouse = master_table(
    "elewarehouse",
    "sWarehouseNo",
    words("sWarehouseName", 100, required=True),
    words("sWarehouseType", 20, required=True),
    words("sAddress", 200),
    memo(),
    Index("ix_elewarehouse_name", "sBrandsId", "sSubsidiaryId", "sWarehouseName"),
)

project = master_table(
    "dh_project",
    "sProjectNo",
    words("sTitle", 60, required=True),
    ident("sCustomerId"),
    words("sAvatar", 50),
    words("sVoice", 50),
    words("sPhase", 20, required=True),
    whole("iDurationSeconds"),
    memo("sScript"),
    at_least("iDurationSeconds", "0"),
)
