"""Schema history of the queue and of what Opstage keeps in the ERP's database. ``migrations.run`` is the way in."""
