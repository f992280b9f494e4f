"""In-process recording: the library loaded into the running process, and its recorder process."""
