"""What every stage uses: errors, options, TOML, the cache, claims on folders, executors."""
