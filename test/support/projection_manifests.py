"""Manifests that use every shape the projection has to get right, one for each kind we apply."""

from typing import Any

from modelfleet.plan import Api
from test.support.kinds import DEPLOYMENT, DISRUPTION_BUDGET, HTTP_ROUTE, SCALED_OBJECT, SERVICE

Object = dict[str, Any]


def manifests(namespace: str) -> dict[Api, Object]:
    """By type; all called `web`."""
    return {
        DEPLOYMENT: deployment(namespace),
        SERVICE: service(namespace),
        DISRUPTION_BUDGET: disruption_budget(namespace),
        HTTP_ROUTE: http_route(namespace),
        SCALED_OBJECT: scaled_object(namespace),
    }


def metadata(namespace: str) -> Object:
    """Labels and annotations (granular maps), and an owner (a list map of atomic items)."""
    return {
        "name": "web",
        "namespace": namespace,
        "labels": {"app": "web", "modelfleet.dev/part": "server"},
        "annotations": {"example.com/slash": "a/b", "example.com/unicode": "größe ✓"},
        "ownerReferences": [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "name": "owner",
                "uid": "7d5c2f0e-0000-4000-8000-000000000001",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }


def deployment(namespace: str) -> Object:
    """Probes, variables from elsewhere, volumes, affinity, tolerations, quantities in canonical form."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(namespace),
        "spec": {
            "revisionHistoryLimit": 2,
            "progressDeadlineSeconds": 1800,
            "selector": {"matchLabels": {"app": "web"}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": "25%"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": pod_spec()},
        },
    }


def pod_spec() -> Object:
    """A pod as the compiler makes it, and then some."""
    return {
        "serviceAccountName": "default",
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 60,
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "securityContext": {
            "runAsNonRoot": True,
            "fsGroup": 1000,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "imagePullSecrets": [{"name": "registry"}],
        "tolerations": [
            {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
            {
                "key": "spot",
                "operator": "Equal",
                "value": "yes",
                "tolerationSeconds": 30,
                "effect": "NoExecute",
            },
        ],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "gpu", "operator": "In", "values": ["a", "b"]}]}
                    ]
                },
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 10, "preference": {"matchExpressions": [{"key": "x", "operator": "Exists"}]}}
                ],
            },
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "weight": 100,
                        "podAffinityTerm": {
                            "topologyKey": "kubernetes.io/hostname",
                            "labelSelector": {"matchLabels": {"app": "web"}},
                        },
                    }
                ]
            },
        },
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {"app": "web"}},
            }
        ],
        "initContainers": [
            {"name": "fetch", "image": "busybox:1.36", "command": ["sh", "-c", "true"]},
        ],
        "containers": [
            server_container(),
            {"name": "sidecar", "image": "busybox:1.36", "args": ["sleep", "1"]},
        ],
        "volumes": [
            {"name": "zz-first", "emptyDir": {}},
            {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
            {"name": "config", "configMap": {"name": "web", "items": [{"key": "a", "path": "b"}]}},
            {"name": "models", "persistentVolumeClaim": {"claimName": "models", "readOnly": True}},
        ],
    }


def server_container() -> Object:
    """The order of ports, variables and mounts is not the order of their keys."""
    return {
        "name": "server",
        "image": "example.com/server:1.2.3",
        "command": ["serve"],
        "args": ["--port", "8080"],
        "ports": [
            {"name": "http", "containerPort": 8080, "protocol": "TCP"},
            {"name": "dns", "containerPort": 53, "protocol": "UDP"},
            {"name": "metrics", "containerPort": 53, "protocol": "TCP"},
        ],
        "env": [
            {"name": "ZED", "value": "1"},
            {
                "name": "TOKEN",
                "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token", "optional": True}},
            },
            {"name": "POD", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}},
            {"name": "CPUS", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1"}}},
            {"name": "EMPTY"},
        ],
        "envFrom": [{"configMapRef": {"name": "web", "optional": True}}],
        "resources": {
            "requests": {"cpu": "1500m", "memory": "2Gi", "nvidia.com/gpu": "1"},
            "limits": {"cpu": "2", "memory": "2Gi", "nvidia.com/gpu": "1"},
        },
        "volumeMounts": [
            {"name": "shm", "mountPath": "/dev/shm"},
            {"name": "models", "mountPath": "/models", "readOnly": True},
            {"name": "config", "mountPath": "/etc/web"},
        ],
        "startupProbe": {
            "httpGet": {"path": "/health", "port": "http"},
            "periodSeconds": 5,
            "failureThreshold": 60,
        },
        "readinessProbe": {"httpGet": {"path": "/health", "port": 8080}},
        "livenessProbe": {"tcpSocket": {"port": 8080}},
        "lifecycle": {"preStop": {"sleep": {"seconds": 5}}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }


def service(namespace: str) -> Object:
    """Ports are keyed by number and protocol."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(namespace),
        "spec": {
            "type": "ClusterIP",
            "selector": {"app": "web"},
            "ports": [
                {"name": "http", "port": 80, "targetPort": "http", "protocol": "TCP"},
                {"name": "dns", "port": 53, "targetPort": 53, "protocol": "UDP"},
            ],
        },
    }


def disruption_budget(namespace: str) -> Object:
    """An atomic label selector with expressions."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(namespace),
        "spec": {
            "maxUnavailable": 1,
            "selector": {
                "matchLabels": {"app": "web"},
                "matchExpressions": [{"key": "tier", "operator": "In", "values": ["b", "a"]}],
            },
        },
    }


def http_route(namespace: str) -> Object:
    """A custom resource whose lists are atomic but for the parents."""
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": metadata(namespace),
        "spec": {
            "parentRefs": [
                {
                    "group": "gateway.networking.k8s.io",
                    "kind": "Gateway",
                    "name": "public",
                    "namespace": "infra",
                    "sectionName": "http",
                }
            ],
            "hostnames": ["web.example.com", "a.example.com"],
            "rules": [
                {
                    "matches": [{"path": {"type": "PathPrefix", "value": "/"}}],
                    "backendRefs": [{"group": "", "kind": "Service", "name": "web", "port": 80, "weight": 1}],
                    "timeouts": {"request": "0s"},
                }
            ],
        },
    }


def scaled_object(namespace: str) -> Object:
    """A custom resource with maps of free keys and numbers."""
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": metadata(namespace),
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "minReplicaCount": 0,
            "maxReplicaCount": 4,
            "cooldownPeriod": 300,
            "pollingInterval": 15,
            "advanced": {
                "horizontalPodAutoscalerConfig": {
                    "behavior": {
                        "scaleDown": {
                            "stabilizationWindowSeconds": 120,
                            "policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}],
                        }
                    }
                }
            },
            "triggers": [
                {
                    "type": "prometheus",
                    "name": "queue",
                    "metricType": "AverageValue",
                    "metadata": {
                        "serverAddress": "http://prometheus:9090",
                        "query": "sum(up)",
                        "threshold": "5",
                    },
                },
                {
                    "type": "cron",
                    "metadata": {
                        "timezone": "UTC",
                        "start": "0 8 * * *",
                        "end": "0 18 * * *",
                        "desiredReplicas": "1",
                    },
                },
            ],
        },
    }
