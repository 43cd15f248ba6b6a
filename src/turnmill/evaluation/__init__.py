"""Evaluation: what held-out tokens cost a model, token-weighted, by set and kind, over all ranks."""
