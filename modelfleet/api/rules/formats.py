"""Rules on formats: how names, keys, paths and quantities are written.

Patterns are those of apimachinery's validation package and of the Gateway API's CRDs, so that nothing
accepted here is refused later in a child.
"""

from typing import Any

from modelfleet.api import base, quantity
from modelfleet.api.core import container, env, pod, probes, security, volumes
from modelfleet.api.inference import APP_PROTOCOL
from modelfleet.api.meta import GROUP, MANAGED_BY_LABEL, PORT_NAME
from modelfleet.api.route import DURATION, HOSTNAME, URL_PATH
from modelfleet.api.rules.rule import Rule, full, matching

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = f"{_LABEL}([.]{_LABEL})*"
_NAME = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_QUALIFIED = f"({_SUBDOMAIN}/)?{_NAME}"
_ANNOTATION_KEY = f"([A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?/)?{_NAME}"
_SUBSCRIPT = "([-a-z0-9.]+/)?[-A-Za-z0-9_.]+"
"""A looser label key: the exact one would cost more than the API server allows inside projected volumes."""
_FIELD_PATH = (
    rf"metadata[.](name|namespace|uid|(labels|annotations)(\['{_SUBSCRIPT}'\])?)"
    "|spec[.](nodeName|serviceAccountName)|status[.](host|pod)IPs?"
)
_VALUE = "([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?"
_NUMBER = "([0-9]+([.][0-9]*)?|[.][0-9]+)"
_QUANTITY = f"{_NUMBER}([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{{1,2}})?"
_SIZE = "[1-9][0-9]*[KMGT]i"
_STANDARD_RESOURCE = f"cpu|memory|ephemeral-storage|hugepages-{_SIZE}"
_PATH_CHARACTERS = "([-A-Za-z0-9/._~!$&()*+,;=:@]|[%][0-9a-fA-F][0-9a-fA-F])"
_HOST = r"([a-zA-Z0-9.-]+|\[[0-9a-fA-F:]+\])(:[0-9]+)?"
_REPOSITORY = "[a-z0-9]+([._-]+[a-z0-9]+)*"
_DIGEST = "[A-Za-z][A-Za-z0-9]*([-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"
_IMAGE = f"({_HOST}/)?{_REPOSITORY}(/{_REPOSITORY})*(:[A-Za-z0-9_][-A-Za-z0-9_.]{{0,127}})?(@{_DIGEST})?"
_CAPABILITY = "[A-Z][A-Z0-9_]*"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"
_PERCENT = "(0|[1-9][0-9]{0,2})%"
_WILDCARD = f"([*][.])?{_SUBDOMAIN}"
_RESERVED_LABEL = f"{MANAGED_BY_LABEL}|pod-template-hash|([-a-z0-9.]+[.])?{GROUP.replace('.', '[.]')}/.*"
_RESERVED_ANNOTATION = f"([-A-Za-z0-9.]+[.])?{GROUP.replace('.', '[.]')}/.*"


_is_label_key = full(_QUALIFIED)
_is_label_value = full(_VALUE)
_is_annotation_key = full(_ANNOTATION_KEY)
_is_reserved_label = full(_RESERVED_LABEL)
_is_reserved_annotation = full(_RESERVED_ANNOTATION)
_is_number_with_unit = full(_QUANTITY)
_is_standard_resource = full(_STANDARD_RESOURCE)
_is_capability = full(_CAPABILITY)
_is_config_key = full(_CONFIG_KEY)
_is_whole_number = full("[0-9]+")
_is_percent = full(_PERCENT)
_is_host = full(_WILDCARD)
_is_address = full("[0-9.]+")
_is_path = full(f"/{_PATH_CHARACTERS}*")


def _is_quantity(value: Any) -> bool:
    return _is_number_with_unit(str(value)) and _quantity_fits(str(value))


def _quantity_fits(text: str) -> bool:
    try:
        quantity.parse(text)
    except ValueError:
        return False
    return True


def _is_port(value: Any) -> bool:
    return 1 <= value <= 65535 if isinstance(value, int) else value == PORT_NAME  # noqa: PLR2004  # TCP's last port


def _is_percent_or_count(value: Any) -> bool:
    return value >= 0 if isinstance(value, int) else _is_percent(value)


def _is_label(key: str) -> bool:
    return len(key) <= base.KEY_MAX and _is_label_key(key)


def _is_resource(key: str) -> bool:
    return _is_standard_resource(key) or ("/" in key and not key.startswith("requests.") and _is_label(key))


def _is_own_annotation(key: str) -> bool:
    return len(key) <= base.KEY_MAX and _is_annotation_key(key) and not _is_reserved_annotation(key)


def _is_hostname(value: str) -> bool:
    return _is_host(value) and not _is_address(value)


def _is_url_path(value: str) -> bool:
    climbs = any(part in value for part in ("//", "/./", "/../", "%2f", "%2F")) or value.endswith(
        ("/..", "/.")
    )
    return _is_path(value) and not climbs


def _descends(path: str) -> bool:
    return not path.startswith(("/", "..")) and "/../" not in path and not path.endswith("/..")


_DESCENDS_CEL = (
    "!self.startsWith('/') && !self.startsWith('..') && !self.contains('/../') && !self.endsWith('/..')"
)
_RELATIVE = "must be a path inside the volume: not starting with / or .., without /../"

NAMES = (
    matching(
        base.DNS_LABEL, _LABEL, "must be a DNS label: lower-case letters, digits and -, no - at either end"
    ),
    matching(
        base.DNS_SUBDOMAIN,
        _SUBDOMAIN,
        "must be a DNS name: lower-case letters, digits, - and ., each part starting and ending with a "
        "letter or digit",
    ),
    matching(
        base.QUALIFIED_NAME,
        _QUALIFIED,
        "must be a key such as app or example.com/app: letters, digits, -, _ and ., at most 63 "
        "characters after the /",
    ),
    matching(
        base.LABEL_VALUE,
        _VALUE,
        "must be a label value: letters, digits, -, _ and ., starting and ending with a letter or digit",
    ),
    matching(
        env.ENV_NAME,
        "[ -<>-~]+",
        "must be a variable name of printable ASCII characters without =, such as MODEL_ID",
    ),
    matching(env.ENV_PREFIX, "[ -<>-~]*", "must be of printable ASCII characters without =, such as MODEL_"),
    matching(
        probes.HTTP_HEADER, "[-A-Za-z0-9]+", "must be a header name of letters, digits and -, such as X-Probe"
    ),
    Rule(
        security.CAPABILITY,
        f"self.matches('^{_CAPABILITY}$') && !self.startsWith('CAP_')",
        lambda self: _is_capability(self) and not self.startswith("CAP_"),
        "must be a capability in capital letters without CAP_, such as IPC_LOCK or ALL",
    ),
    matching(
        APP_PROTOCOL,
        _QUALIFIED,
        "must be a protocol name such as http, kubernetes.io/h2c or example.com/my-protocol",
    ),
    Rule(
        base.CONFIG_KEY,
        f"self.matches('^{_CONFIG_KEY}$') && self != '.' && !self.startsWith('..')",
        lambda self: _is_config_key(self) and self != "." and not self.startswith(".."),
        "must be a key of letters, digits, -, _ and ., not starting with ..",
    ),
)

MAPS = (
    Rule(
        base.LABELS,
        f"self.all(k, size(k) <= {base.KEY_MAX} && k.matches('^({_QUALIFIED})$') && "
        f"self[k].matches('^({_VALUE})$'))",
        lambda self: all(_is_label(k) and _is_label_value(v) for k, v in self.items()),
        "must have keys such as app or example.com/app and values of letters, digits, -, _ and .: put "
        "other values into annotations",
    ),
    Rule(
        pod.POD_LABELS,
        f"self.all(k, !k.matches('^({_RESERVED_LABEL})$'))",
        lambda self: not any(map(_is_reserved_label, self)),
        f"must not set {MANAGED_BY_LABEL}, pod-template-hash or keys of {GROUP}: the controller sets "
        "them; use a key of your own domain",
    ),
    Rule(
        base.ANNOTATIONS,
        f"self.all(k, size(k) <= {base.KEY_MAX} && k.matches('^({_ANNOTATION_KEY})$') && "
        f"!k.matches('^({_RESERVED_ANNOTATION})$'))",
        lambda self: all(map(_is_own_annotation, self)),
        f"must have keys such as app or example.com/app, and none of {GROUP}, which the controller sets",
    ),
    Rule(
        container.RESOURCE_LIST,
        f"self.all(k, k.matches('^({_STANDARD_RESOURCE})$') || (k.contains('/') && "
        f"!k.startsWith('requests.') && size(k) <= {base.KEY_MAX} && k.matches('^({_QUALIFIED})$')))",
        lambda self: all(map(_is_resource, self)),
        "must name resources: cpu, memory, ephemeral-storage, hugepages-<size> such as hugepages-2Mi, or "
        "a device by its full name such as rdma/hca",
    ),
    Rule(
        container.RESOURCE_LIST,
        "self.all(k, !k.contains('/') || string(self[k]).matches('^[0-9]+$'))",
        lambda self: all("/" not in k or _is_whole_number(str(v)) for k, v in self.items()),
        "must count devices in whole numbers: write rdma/hca: 1",
    ),
    Rule(
        volumes.CLAIM_RESOURCES,
        "self.all(k, k == 'storage') && 'storage' in self",
        lambda self: set(self) == {"storage"},
        "must be the size of the volume and nothing else: write storage: 200Gi",
    ),
)

VALUES = (
    Rule(
        base.QUANTITY,
        f"string(self).matches('^({_QUANTITY})$') && quantity(string(self)).isLessThan(quantity('8Ei'))",
        _is_quantity,
        "must be a quantity: a number with an optional unit such as 500m, 2 or 16Gi, not negative and "
        "below 8Ei",
    ),
    Rule(
        base.PORT,
        f"type(self) == int ? self >= 1 && self <= 65535 : self == '{PORT_NAME}'",
        _is_port,
        f"must be a port number from 1 to 65535, or {PORT_NAME} for container.port",
    ),
    Rule(
        base.PERCENT_OR_COUNT,
        f"type(self) == int ? self >= 0 : self.matches('^{_PERCENT}$')",
        _is_percent_or_count,
        'must be a number of pods such as 1, or a percentage in quotes such as "25%"',
    ),
    Rule(base.RELATIVE_PATH, _DESCENDS_CEL, _descends, _RELATIVE),
    Rule(container.EXPANDED_PATH, _DESCENDS_CEL, _descends, _RELATIVE),
    matching(container.MOUNT_PATH, "/[^:]*", "must be an absolute path without colons, such as /models"),
    matching(
        container.IMAGE,
        _IMAGE,
        "must be an image reference such as registry.example.com/team/server:1.2: repository in lower "
        "case, no spaces",
    ),
    Rule(
        env.FIELD_PATH,
        f'self.matches(r"^({_FIELD_PATH})$")',
        full(_FIELD_PATH),
        "must be a field of the pod such as metadata.name, metadata.labels['app'], spec.nodeName or "
        "status.podIP",
    ),
    matching(
        env.RESOURCE_FIELD,
        f"(limits|requests)[.]({_STANDARD_RESOURCE})",
        "must be limits.<resource> or requests.<resource> with cpu, memory, ephemeral-storage or "
        "hugepages-<size>",
    ),
    Rule(
        HOSTNAME,
        f"self.matches('^{_WILDCARD}$') && !self.matches('^[0-9.]+$')",
        _is_hostname,
        "must be a host name in lower case such as models.example.com or *.example.com, not an IP "
        "address, without scheme, port or path",
    ),
    Rule(
        URL_PATH,
        f"self.matches('^/{_PATH_CHARACTERS}*$') && !self.contains('//') && !self.contains('/./') && "
        "!self.contains('/../') && !self.contains('%2f') && !self.contains('%2F') && "
        "!self.endsWith('/..') && !self.endsWith('/.')",
        _is_url_path,
        "must be a path that starts with /, such as /v1, without //, /./, /../, query or fragment",
    ),
    matching(
        DURATION,
        "([0-9]{1,5}(h|m|s|ms)){1,4}",
        "must be a duration of up to four parts such as 30s, 1m30s or 500ms; 0s means no limit",
    ),
)

FORMAT_RULES = NAMES + MAPS + VALUES
