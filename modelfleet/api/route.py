"""The optional HTTPRoute: which Gateway listeners, host names and paths lead to the model.

The Gateway, its listeners, certificates and DNS belong to the platform; nothing here creates one.
"""

from typing import Annotated

from modelfleet.api.base import ApiObject, DNSLabel, DNSSubdomain, Format, Items, Text

HOSTNAME = Format("host name")
URL_PATH = Format("URL path")
DURATION = Format("duration")

Hostname = Annotated[str, Text(max=253, min=1), HOSTNAME]
URLPath = Annotated[str, Text(max=1024, min=1), URL_PATH]
Duration = Annotated[str, Text(max=24, min=1), DURATION]


class ParentRef(ApiObject):
    """One listener of a Gateway."""

    name: DNSSubdomain
    """Name of the Gateway."""
    namespace: DNSLabel | None = None
    """Namespace of the Gateway. Default: the InferenceService's own."""
    section_name: DNSSubdomain
    """Name of the listener, such as http or https. Required: without it the route would attach to every
    listener that lets it, plain HTTP included."""


class Timeouts(ApiObject):
    """Time limits on the way from the client to the model, such as 30s or 5m; 0s means none."""

    request: Duration = "0s"
    """From the first byte of the request to the last of the answer. Default 0s, no limit: gateways cut
    streamed answers off at 15 s or 60 s otherwise."""
    backend_request: Duration | None = None
    """One attempt at the model; at most `request`. Default: the gateway's."""


class Route(ApiObject):
    """An HTTPRoute to the model."""

    parent_refs: Annotated[tuple[ParentRef, ...], Items(min=1, max=32)]
    """Gateway listeners that take the traffic; each may be named once."""
    hostnames: Annotated[tuple[Hostname, ...], Items(max=16)] = ()
    """Host names in lower case; *.example.com matches all names below example.com. Default: every name of the
    listener."""
    paths: Annotated[tuple[URLPath, ...], Items(min=1, max=16)] = ("/",)
    """Path prefixes, passed on unchanged. Default /: every path."""
    timeouts: Timeouts = Timeouts()
    """Time limits."""
