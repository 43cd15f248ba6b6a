"""Executors: a file each, run a shard function over shards."""
