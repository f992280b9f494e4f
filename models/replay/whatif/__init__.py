"""What-if: a launch's trace as if its arrays had longer rows or began elsewhere."""
