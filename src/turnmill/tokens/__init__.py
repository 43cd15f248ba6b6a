"""From text to token ids, labels, examples and packs."""
