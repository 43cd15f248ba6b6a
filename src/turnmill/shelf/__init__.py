"""The shelf: a directory of datasets, a sub-directory each, described by its `dataset.toml`."""
