"""Analysis and reporting: counters, bounds, estimates, advice, reports and comparisons."""
