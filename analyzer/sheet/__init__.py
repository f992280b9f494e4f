"""A profile laid out as tables of plain values: the sheet, its filters, the source page.

One format of a report is a file in `report`, not here.
"""
