"""What lies where, and the documents that move it."""

from __future__ import annotations

from sqlalchemy import Index

from workers.erp.demo.schema.columns import (
    QUANTITY,
    at_least,
    at_most,
    day,
    document_table,
    exact,
    ident,
    line_table,
    system_table,
    words,
)

# dReserved: promised to sales orders and still here; free to take is dQuantity - dReserved.
stock = system_table(
    "sto_stock",
    ident("sWarehouseId", required=True),
    ident("sProductId", required=True),
    exact("dQuantity", QUANTITY),
    exact("dReserved", QUANTITY),
    Index("uq_sto_stock_place", "sBrandsId", "sSubsidiaryId", "sWarehouseId", "sProductId", unique=True),
    Index("ix_sto_stock_product", "sBrandsId", "sSubsidiaryId", "sProductId"),
    at_least("dQuantity", "0"),
    at_least("dReserved", "0"),
    at_most("dReserved", "dQuantity"),
)

inbound = document_table(
    "sto_inbound",
    words("sInboundType", 20, required=True),
    ident("sSupplierId"),
    ident("sPurchaseOrderId"),
    words("sDeliveryNoteNo", 50),
    day("tInboundDate"),
    Index("ix_sto_inbound_source", "sPurchaseOrderId"),
)

inbound_line = line_table(
    "sto_inboundline",
    ident("sProductId", required=True),
    ident("sWarehouseId", required=True),
    exact("dQuantity", QUANTITY, None),
    ident("sSourceLineId"),
    words("sBatchNo", 50),
    at_least("dQuantity", "0", above=True),
)

outbound = document_table(
    "sto_outbound",
    words("sOutboundType", 20, required=True),
    ident("sCustomerId"),
    ident("sSalesOrderId"),
    day("tOutboundDate"),
    Index("ix_sto_outbound_source", "sSalesOrderId"),
)

outbound_line = line_table(
    "sto_outboundline",
    ident("sProductId", required=True),
    ident("sWarehouseId", required=True),
    exact("dQuantity", QUANTITY, None),
    ident("sSourceLineId"),
    at_least("dQuantity", "0", above=True),
)

adjustment = document_table(
    "sto_adjustment",
    ident("sProductId", required=True),
    ident("sWarehouseId", required=True),
    exact("dDelta", QUANTITY, None),
    exact("dBeforeQuantity", QUANTITY),
    exact("dAfterQuantity", QUANTITY),
    words("sReason", 20, required=True),
    Index("ix_sto_adjustment_place", "sBrandsId", "sSubsidiaryId", "sWarehouseId", "sProductId"),
    at_least("dAfterQuantity", "0"),
)
