"""The only reader of a model directory."""
