"""The changes, each naming the one before it."""
