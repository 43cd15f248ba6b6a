"""The chat contract: rules as small functions, walked in one pass."""
