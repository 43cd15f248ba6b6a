"""Exact duplicates: which of several equal rows stays."""
