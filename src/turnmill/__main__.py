"""`python -m turnmill`, and `torchrun -m turnmill`: the command line."""

from turnmill.cli.app import main

if __name__ == "__main__":
    main()
