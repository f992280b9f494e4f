"""The schedule of a launch: blocks to SMs, and the order of warps between barriers."""
