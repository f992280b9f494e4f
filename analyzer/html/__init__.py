"""The HTML report: one file for a browser, usable offline and without scripts.

`gather` selects the content from traces and profiles within size bounds; the `*_svg` modules draw
SVG; `page` fills the templates.
"""
