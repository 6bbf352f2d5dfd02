"""Products with their quantity discounts, and whether they are on sale in the shop."""

from __future__ import annotations

from sqlalchemy import Index

from workers.erp.demo.schema.columns import (
    PRICE,
    QUANTITY,
    RATE,
    at_least,
    exact,
    flag,
    ident,
    line_table,
    master_table,
    memo,
    moment,
    whole,
    words,
)

product = master_table(
    "eleproduct",
    "sProductNo",
    words("sProductName", 100, required=True),
    words("sProductType", 20, required=True),
    words("sSpec", 100),
    whole("iGramWeight"),
    words("sSheetSize", 30),
    words("sProcess", 100),
    words("sUnit", 10, required=True),
    exact("dPrice", PRICE, None),
    exact("dCost", PRICE),
    exact("dMinStock", QUANTITY),
    ident("sWarehouseId"),
    memo(),
    Index("ix_eleproduct_name", "sBrandsId", "sSubsidiaryId", "sProductName"),
    at_least("dPrice", "0"),
)

# dDiscount 0.9500 from dMinQuantity on: a factor on the list price, the highest reached step counts.
product_tier = line_table(
    "eleproducttier",
    exact("dMinQuantity", QUANTITY, None),
    exact("dDiscount", RATE, None),
    at_least("dMinQuantity", "0", above=True),
    at_least("dDiscount", "0", above=True),
)

listing = master_table(
    "pro_listing",
    "sListingNo",
    ident("sProductId", required=True),
    words("sTitle", 100, required=True),
    flag("bListed"),
    ident("sListPerson"),
    moment("tListDate"),
    ident("sUnlistPerson"),
    moment("tUnlistDate"),
    Index("uq_pro_listing_product", "sBrandsId", "sSubsidiaryId", "sProductId", unique=True),
)
