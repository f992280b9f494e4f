"""Instructions that reach memory: loads, stores, atomics, copies; bounds and faults."""
