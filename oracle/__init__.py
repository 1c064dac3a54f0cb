"""Independent answers to what a program should give, and the comparison of two answers."""
