"""Held-out rows: prompt groups under a hash threshold."""
