"""Why a line costs what it costs: one warp's access, lane by lane, on one device.

`place` finds the instructions of a source line, `search` the worst row of the trace on a device,
and `picture` the transactions of its lanes. `sentence` describes them in words; `text` and `svg`
draw them.
"""
