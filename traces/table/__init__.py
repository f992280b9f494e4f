"""One table as an Arrow file: columns, batches, dictionaries, written and read in bounded memory.

Which tables there are is said in `schema.py`.
"""
