"""Entry point of `python -m hack.cluster`."""

from hack.cluster.cli import main

main(prog_name="python -m hack.cluster")
