"""Reading and writing files: the only place that opens them."""
