"""Name, labels and owner of the children.

Every child has the InferenceService's name and two labels; the pods' selector is one of the two, for ever,
because a Deployment's selector can't be changed (rule A9). No label or annotation of the user's object is
copied: a tracking label of a GitOps tool on a child makes the tool prune it (argo-cd#8683).
"""

from typing import Any

from modelfleet.api.inference import KIND, InferenceService
from modelfleet.api.meta import API_VERSION, MANAGED_BY, MANAGED_BY_LABEL, OWNER_LABEL


def selector(isvc: InferenceService) -> dict[str, str]:
    """The labels that tell our pods from all others."""
    return {OWNER_LABEL: isvc.metadata.name}


def labels(isvc: InferenceService) -> dict[str, str]:
    """The labels of every child and of every pod."""
    return {MANAGED_BY_LABEL: MANAGED_BY, **selector(isvc)}


def child(
    isvc: InferenceService,
    api_version: str,
    kind: str,
    spec: dict[str, Any],
    *,
    owner_uid: str | None,
    annotations: dict[str, str] | None = None,
) -> dict[str, Any]:
    """A complete manifest of a child.

    Args:
        isvc: The owner.
        api_version: Of the child.
        kind: Of the child.
        spec: The child's spec.
        owner_uid: UID of the owner; None while there is none (`modelfleet render`), which leaves the owner
            reference out.
        annotations: Of the child; left out when empty.
    """
    metadata: dict[str, Any] = {"name": isvc.metadata.name}
    if isvc.metadata.namespace:
        metadata["namespace"] = isvc.metadata.namespace
    metadata["labels"] = labels(isvc)
    if annotations:
        metadata["annotations"] = annotations
    if owner_uid is not None:
        metadata["ownerReferences"] = [_owner(isvc, owner_uid)]
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def _owner(isvc: InferenceService, uid: str) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "name": isvc.metadata.name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
