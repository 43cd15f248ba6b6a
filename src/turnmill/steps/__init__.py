"""Steps: recipes as data, their fingerprints, folders and manifests."""
