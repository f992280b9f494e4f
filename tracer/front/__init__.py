"""Source text to PTX text, one file a language."""
