"""Training on prepared data: optimizer steps, learning rates, checkpoints, and who watches a run."""
