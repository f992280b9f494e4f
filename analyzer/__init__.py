"""From raw counts to answers: counters, bounds, advice, reports and comparisons."""
