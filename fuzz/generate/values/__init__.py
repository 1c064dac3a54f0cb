"""Values of inputs and constants."""
