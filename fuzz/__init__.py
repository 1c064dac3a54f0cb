"""Program generators, campaigns, reduction of what disagrees, and seeded faults."""
