"""`python -m xmlstream` is `xmlstream`."""

from xmlstream.cli import main

if __name__ == "__main__":
    main()
