"""The compiled engine: basic blocks as machine code over the 32 lanes of a warp."""
