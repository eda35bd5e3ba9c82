"""The version of the installed distribution, in one place."""

from importlib.metadata import version

VERSION = version("modelfleet")
