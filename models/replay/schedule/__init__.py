"""Who runs where and when: blocks to SMs, warps in order, never across a barrier."""
