"""Which proxy, if any, stands between us and the API server: decided once, from the environment, as Go does.

HTTPS_PROXY and HTTP_PROXY, unless NO_PROXY or a loopback address says otherwise. NO_PROXY may hold networks
(10.96.0.0/12), which Python's own reading of it ignores: a pod that misses this sends the requests for its
own cluster out of the cluster. Rules: golang.org/x/net/http/httpproxy.
"""

from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import SplitResult, urlsplit

from modelfleet.kube.errors import ConfigError

_DEFAULT_PORTS = {"http": 80, "https": 443}


def proxy_for(server: str, configured: str, environ: Mapping[str, str]) -> str | None:
    """The proxy's URL; `configured` (a kubeconfig's proxy-url) wins over the environment."""
    target = urlsplit(server)
    chosen = configured or _from_environment(target, environ)
    if not chosen:
        return None
    proxy = chosen if "://" in chosen else f"http://{chosen}"
    if urlsplit(proxy).scheme not in ("http", "https"):
        raise ConfigError(f"a {urlsplit(proxy).scheme!r} proxy can't be used; configure an HTTP proxy")
    return proxy


def is_loopback(server: str) -> bool:
    """Whether the server is on this machine."""
    host = urlsplit(server).hostname or ""
    address = _address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def _from_environment(target: SplitResult, environ: Mapping[str, str]) -> str:
    name = f"{target.scheme}_proxy"
    proxy = environ.get(name.upper()) or environ.get(name) or ""
    excluded = environ.get("NO_PROXY") or environ.get("no_proxy") or ""
    if not proxy or is_loopback(target.geturl()):
        return ""
    if any(_excludes(entry.strip().lower(), target) for entry in excluded.split(",")):
        return ""
    return proxy


def _excludes(entry: str, target: SplitResult) -> bool:
    """Whether an entry of NO_PROXY ("*", a network, a host or domain, perhaps a port) covers the target."""
    if not entry or entry == "*":
        return bool(entry)
    host = target.hostname or ""
    if "/" in entry:
        return _contains(entry, host)
    name, _, port = entry.rpartition(":") if entry.count(":") == 1 else (entry, "", "")
    if port and port != str(target.port or _DEFAULT_PORTS[target.scheme]):
        return False
    name = name.strip("[]").removeprefix("*")
    if name.startswith("."):
        return host.endswith(name)
    return host == name or host.endswith(f".{name}")


def _contains(network: str, host: str) -> bool:
    address = _address(host)
    try:
        return address is not None and address in ip_network(network, strict=False)
    except ValueError:
        return False


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None
