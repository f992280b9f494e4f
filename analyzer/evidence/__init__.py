"""What the rules of advice look at: a launch's accesses, trials of changes, and their gain."""
