"""The HTML report: one file for a browser, without a network and, if need be, without scripts.

`gather` chooses what is shown of traces and profiles, bounded; the drawings are made here as SVG;
`page` puts all into the templates.
"""
