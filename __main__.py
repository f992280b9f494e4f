"""`python -m cutrace` is the command `cutrace`."""

from .commands._main import main

if __name__ == "__main__":
    main()
