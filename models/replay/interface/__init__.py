"""What a model sees of a trace and answers, and the options of a replay."""
