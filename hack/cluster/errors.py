"""Why the local cluster could not do what was asked; each message names the part and the next step."""


class ClusterError(Exception):
    """Base of everything `hack.cluster` raises on purpose; the command line prints it without a traceback."""


class BuildError(ClusterError):
    """A program, wheel or package could not be built or fetched."""


class StartError(ClusterError):
    """A process did not come up; the message ends with the last lines of its log."""


class HostError(ClusterError):
    """The host cannot carry this: missing right, occupied address, second real node, path too long."""
