"""`python -m cutrace` is the command `cutrace`."""

from .cli import main

if __name__ == "__main__":
    main()
