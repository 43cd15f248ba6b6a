"""How the tables of a shelf's database became what they are, a file a change (`versions/`)."""
