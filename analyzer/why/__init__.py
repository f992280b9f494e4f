"""Why a line costs what it costs: one warp's access, lane by lane, on one device.

`place` finds the instructions of a source line, `search` the row of the trace that is worst on a
device, `picture` what the device makes of its lanes, `sentence` says it in words; `text` and `svg`
draw it.
"""
