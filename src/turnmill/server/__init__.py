"""REST over the shelf: a route file a noun (`pip install 'turnmill[serve]'`)."""
