"""Tools of this repository's developers; nothing here is shipped."""
