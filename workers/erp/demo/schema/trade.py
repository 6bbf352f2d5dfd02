"""Quotations, purchase requisitions and orders, outsourcing, sales orders."""

from __future__ import annotations

from sqlalchemy import Index

from workers.erp.demo.schema.columns import (
    AMOUNT,
    PRICE,
    QUANTITY,
    RATE,
    at_least,
    at_most,
    day,
    document_table,
    exact,
    flag,
    ident,
    line_table,
    whole,
    words,
)

quotation = document_table(
    "quo_quotationmaster",
    ident("sCustomerId", required=True),
    words("sTitle", 100, required=True),
    words("sContact", 50),
    day("tQuoteDate"),
    day("tDeliveryDate"),
    whole("iValidDays"),
    words("sPayTerm", 20),
    exact("dTaxRate", RATE),
    exact("dTotalAmount", AMOUNT),
    Index("ix_quo_quotationmaster_customer", "sBrandsId", "sSubsidiaryId", "sCustomerId"),
)

quotation_part = line_table(
    "quo_quotationpart",
    words("sPartName", 100, required=True),
    words("sMaterial", 100),
    whole("iGramWeight"),
    words("sSheetSize", 30),
    words("sColor", 20),
    words("sProcess", 100),
    exact("dQuantity", QUANTITY, None),
    exact("dPrice", PRICE, None),
    exact("dAmount", AMOUNT),
    at_least("dQuantity", "0", above=True),
)

quotation_tier = line_table(
    "quo_quotationtier",
    exact("dQuantity", QUANTITY, None),
    exact("dPrice", PRICE, None),
    exact("dAmount", AMOUNT),
    at_least("dQuantity", "0", above=True),
)

requisition = document_table(
    "pur_requisition",
    words("sDepartment", 50, required=True),
    day("tNeedDate"),
    words("sReason", 200),
    flag("bUrgent"),
    exact("dTotalAmount", AMOUNT),
)

requisition_line = line_table(
    "pur_requisitionline",
    ident("sProductId", required=True),
    exact("dQuantity", QUANTITY, None),
    exact("dPrice", PRICE),
    exact("dAmount", AMOUNT),
    exact("dOrderedQuantity", QUANTITY),
    words("sMemo", 200),
    at_least("dQuantity", "0", above=True),
    at_least("dOrderedQuantity", "0"),
    at_most("dOrderedQuantity", "dQuantity"),
)

purchase_order = document_table(
    "pur_order",
    ident("sSupplierId", required=True),
    ident("sRequisitionId"),
    day("tOrderDate"),
    day("tDeliveryDate"),
    words("sPayTerm", 20),
    exact("dTaxRate", RATE),
    exact("dTotalAmount", AMOUNT),
    Index("ix_pur_order_supplier", "sBrandsId", "sSubsidiaryId", "sSupplierId"),
    Index("ix_pur_order_source", "sRequisitionId"),
)

purchase_order_line = line_table(
    "pur_orderline",
    ident("sProductId", required=True),
    exact("dQuantity", QUANTITY, None),
    exact("dPrice", PRICE, None),
    exact("dAmount", AMOUNT),
    exact("dReceivedQuantity", QUANTITY),
    ident("sSourceLineId"),
    words("sMemo", 200),
    at_least("dQuantity", "0", above=True),
    at_least("dReceivedQuantity", "0"),
    at_most("dReceivedQuantity", "dQuantity"),
)

outsource_order = document_table(
    "out_outsourceorder",
    ident("sSupplierId", required=True),
    day("tOrderDate"),
    day("tDeliveryDate"),
    exact("dTotalAmount", AMOUNT),
    Index("ix_out_outsourceorder_supplier", "sBrandsId", "sSubsidiaryId", "sSupplierId"),
)

outsource_order_line = line_table(
    "out_outsourceorderline",
    ident("sProductId", required=True),
    words("sProcess", 100, required=True),
    exact("dQuantity", QUANTITY, None),
    exact("dPrice", PRICE, None),
    exact("dAmount", AMOUNT),
    at_least("dQuantity", "0", above=True),
)

sales_order = document_table(
    "sal_order",
    ident("sCustomerId", required=True),
    words("sCustomerPoNo", 50),
    day("tOrderDate"),
    day("tDeliveryDate"),
    words("sAddress", 200),
    exact("dTotalAmount", AMOUNT),
    words("sCancelReason", 200),
    Index("ix_sal_order_customer", "sBrandsId", "sSubsidiaryId", "sCustomerId"),
)

# dListPrice and dDiscount are what the product said when the order was taken; dOutQuantity is on outbounds so far.
sales_order_line = line_table(
    "sal_orderline",
    ident("sProductId", required=True),
    ident("sWarehouseId", required=True),
    exact("dQuantity", QUANTITY, None),
    exact("dListPrice", PRICE),
    exact("dDiscount", RATE, "1"),
    exact("dPrice", PRICE),
    exact("dAmount", AMOUNT),
    exact("dOutQuantity", QUANTITY),
    at_least("dQuantity", "0", above=True),
    at_least("dOutQuantity", "0"),
    at_most("dOutQuantity", "dQuantity"),
)
