"""Tools for the developers of this project; not part of the wheel."""
