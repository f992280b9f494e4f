"""Infrastructure of every stage: errors, options, TOML, cache, folder claims, executors."""
