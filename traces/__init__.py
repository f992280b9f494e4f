"""The waist: a kernel's execution as hardware-independent Arrow tables."""
