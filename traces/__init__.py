"""Trace format: a kernel's execution as hardware-independent Arrow tables; writers and readers."""
