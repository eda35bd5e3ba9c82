"""From a typed spec to the manifests of its children: pure, and deterministic to the byte.

The same spec gives the same bytes in every process and in every release: a controller that is upgraded
restarts no model (architecture.md section 5, points 3 and 4). What a manifest leaves out is the API server's
to default or somebody else's to set; what it contains is put back when somebody changes it.
"""

from modelfleet.compiler.children import Children, compile_inference

__all__ = ["Children", "compile_inference"]
