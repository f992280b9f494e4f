"""The first code of a recorded Python: this folder comes first in `$PYTHONPATH`."""
