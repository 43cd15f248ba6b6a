"""What a person reads: census, explanations, HTML."""
