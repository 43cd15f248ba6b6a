"""Prepared data for trainers: steps of whole packs or examples, for any number of ranks and workers, resumable."""
