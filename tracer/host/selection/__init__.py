"""What of a session is recorded: kernels, launches, blocks, samples of blocks, and their rows.

Only what is kept or left out is decided here, not how it is written.
"""
