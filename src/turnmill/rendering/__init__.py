"""Rendering with provenance: the template's text, and who wrote each character of it."""
