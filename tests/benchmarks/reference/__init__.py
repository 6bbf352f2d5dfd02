"""The reference operation: a purchase order. Its tables, its payload, its SQL, and what must be true afterwards.

No import of the product here: the peers' environment runs this as well.
"""
