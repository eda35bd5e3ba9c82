"""The InferenceService as the store keeps it: spec and status as canonical JSON, decoded when needed.

Bytes instead of dicts keep thousands of cached objects out of the garbage collector's way (facts 0.8) and
can't be changed by a reader (rule I13).
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from modelfleet.plan import canonical


class _Status(msgspec.Struct):
    conditions: list[dict[str, Any]] = []


class InferenceServiceView(msgspec.Struct, frozen=True, gc=False):
    """Our own kind, whole but for its metadata and managedFields."""

    spec: bytes
    status: bytes = b"{}"

    def conditions(self) -> list[dict[str, Any]]:
        """`status.conditions` as the server returned them; a new copy each time."""
        return msgspec.json.decode(self.status, type=_Status).conditions


def view_inference_service(obj: Mapping[str, Any]) -> InferenceServiceView:
    """Decode modelfleet.dev/v1alpha1 InferenceService; anything at all may stand in its spec."""
    return InferenceServiceView(spec=canonical(obj.get("spec")), status=canonical(obj.get("status") or {}))
