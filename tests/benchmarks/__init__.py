"""The same ERP write through Opstage, by hand and through other queues, measured side by side: ``make bench``."""
