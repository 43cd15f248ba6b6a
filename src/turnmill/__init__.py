"""turnmill: chat data in any dialect, made into training data a language model can be trusted to learn from."""

__version__ = "0.1.0"
