"""Campaigns: generate, judge, look into what disagrees; in one process, in several, on a cluster."""
