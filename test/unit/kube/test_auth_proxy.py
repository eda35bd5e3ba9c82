"""Which proxy stands between us and the API server."""

import pytest

from modelfleet.kube.errors import ConfigError
from modelfleet.kube.proxy import is_loopback, proxy_for

PROXY = {"HTTPS_PROXY": "http://proxy:3128", "HTTP_PROXY": "http://plain:3128"}


@pytest.mark.parametrize(
    ("server", "environ", "expected"),
    [
        ("https://10.96.0.1:443", {}, None),
        ("https://10.96.0.1:443", PROXY, "http://proxy:3128"),
        ("http://10.96.0.1:80", PROXY, "http://plain:3128"),
        ("https://k8s.example", {"https_proxy": "proxy:1"}, "http://proxy:1"),
        ("https://127.0.0.1:6443", PROXY, None),
        ("https://[::1]:6443", PROXY, None),
        ("https://localhost:6443", PROXY, None),
        ("https://10.96.0.1", PROXY | {"NO_PROXY": "10.96.0.0/12"}, None),
        ("https://10.112.0.1", PROXY | {"NO_PROXY": "10.96.0.0/12"}, "http://proxy:3128"),
        ("https://10.96.0.1", PROXY | {"no_proxy": "a.example, 10.96.0.1"}, None),
        ("https://k8s.example", PROXY | {"NO_PROXY": "*"}, None),
        ("https://k8s.example", PROXY | {"NO_PROXY": "example"}, None),
        ("https://k8s.example", PROXY | {"NO_PROXY": ".example"}, None),
        ("https://k8s.example", PROXY | {"NO_PROXY": "*.Example"}, None),
        ("https://k8s.example", PROXY | {"NO_PROXY": "ample,k8s,/,,1.2.3.4/99"}, "http://proxy:3128"),
        ("https://k8s.example", PROXY | {"NO_PROXY": "k8s.example:443"}, None),
        ("https://k8s.example:6443", PROXY | {"NO_PROXY": "k8s.example:443"}, "http://proxy:3128"),
        ("https://[fd00::1]:6443", PROXY | {"NO_PROXY": "fd00::/8"}, None),
        ("https://[fd00::1]:6443", PROXY | {"NO_PROXY": "fd00::1"}, None),
    ],
)
def test_the_environment_is_read_as_go_does(
    server: str, environ: dict[str, str], expected: str | None
) -> None:
    """A controller reaches its API server the way kubectl beside it would."""
    assert expected == proxy_for(server, "", environ)


def test_a_configured_proxy_wins() -> None:
    """proxy-url is about this cluster, the environment about everything."""
    assert "http://own:1" == proxy_for("https://127.0.0.1", "http://own:1", PROXY | {"NO_PROXY": "*"})


def test_an_unusable_kind_of_proxy_is_refused() -> None:
    """Going around a proxy silently could break a rule of the network."""
    with pytest.raises(ConfigError, match="a 'socks5' proxy can't be used"):
        proxy_for("https://k8s.example", "socks5://proxy", {})


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        ("https://127.0.0.1:1", True),
        ("https://[::1]:1", True),
        ("http://localhost", True),
        ("https://10.0.0.1", False),
        ("https://localhost.example", False),
    ],
)
def test_loopback_addresses(server: str, *, expected: bool) -> None:
    """Only the machine itself."""
    assert expected == is_loopback(server)
