"""The sidecar: a service of its own that takes a dataset with each job, prepares it, and trains a model on it."""
