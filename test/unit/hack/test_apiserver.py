from pathlib import Path
from typing import Any

import pytest

from hack.cluster import apiserver
from hack.cluster.apiserver import Credentials
from hack.cluster.certificates import Pair


def pair(name: str) -> Pair:
    """Paths of a pair that need not exist."""
    return Pair(Path(f"/pki/{name}.crt"), Path(f"/pki/{name}.key"))


CREDENTIALS = Credentials(
    authority=Path("/pki/ca.crt"),
    authority_key=Path("/pki/ca.key"),
    front_proxy_authority=Path("/pki/front-proxy-ca.crt"),
    serving=pair("apiserver"),
    kubelet_client=pair("apiserver-kubelet-client"),
    front_proxy_client=pair("front-proxy-client"),
    service_account=pair("sa"),
)


def flags(**change: Any) -> dict[str, str]:
    """The API server's flags by name."""
    options: dict[str, Any] = {"etcd_url": "http://e", "address": "127.0.0.1", "port": 1, "audit": None}
    options |= {"feature_gates": {}} | change
    command = apiserver.kube_apiserver(Path("/bin/kube-apiserver"), CREDENTIALS, **options)
    return {name: value for name, _, value in (argument.partition("=") for argument in command[1:])}


def test_authorization_is_rbac() -> None:
    """Every server enforces RBAC and node isolation: tests of grants mean something."""
    assert "Node,RBAC" == flags()["--authorization-mode"]


def test_audit_is_optional() -> None:
    """Without audit no policy; with it policy and log of this instance."""
    assert "--audit-log-path" not in flags()
    found = flags(audit=(Path("/conf/policy"), Path("/log/audit")))
    assert ("/conf/policy", "/log/audit") == (found["--audit-policy-file"], found["--audit-log-path"])


def test_feature_gates_are_passed_on() -> None:
    """A test that needs a client's fallback turns WatchList off."""
    assert "--feature-gates" not in flags()
    assert "A=true,WatchList=false" == flags(feature_gates={"WatchList": False, "A": True})["--feature-gates"]


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("127.0.0.1", {"--endpoint-reconciler-type": "none"}),
        ("10.250.0.1", {"--advertise-address": "10.250.0.1"}),
    ],
)
def test_only_a_reachable_address_is_advertised(address: str, expected: dict[str, str]) -> None:
    """Loopback can't be an endpoint of the Service `kubernetes`; a node's bridge is."""
    found = flags(address=address)
    names = ("--endpoint-reconciler-type", "--advertise-address")
    assert expected == {name: found[name] for name in names if name in found}
