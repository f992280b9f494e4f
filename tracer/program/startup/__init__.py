"""What a recorded Python runs first: this folder is put before those of `$PYTHONPATH`."""
