"""What-if: a launch's trace with padded or realigned arrays."""
