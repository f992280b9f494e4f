"""What a person types: one file a verb, found by listing this folder."""
