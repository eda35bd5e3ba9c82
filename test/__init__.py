"""Makes `test` a package of ours, ahead of the standard library's package of the same name."""
