"""Record the execution of a kernel as a trace."""
