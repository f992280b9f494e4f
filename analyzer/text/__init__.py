"""Words and columns of text that several reports share, and the writing of a report's file.

Nothing is counted here, and no counter is chosen.
"""
