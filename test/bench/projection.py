"""What a child's event costs before a planner sees it: `python -m test.bench.projection` from the repository.

The object is test/unit/kube/data/live_deployment.json, larger than what we compile (7.7 kB, 150 owned path
elements). The least of many rounds of CPU time counts: what else runs on the machine only adds.
"""

import time
import timeit
from collections.abc import Callable
from pathlib import Path

import msgspec

from modelfleet.kube.projection import owned, owned_digest
from modelfleet.kube.resource import Resource
from test.support.kinds import DEPLOYMENT

RECORDED = Path(__file__).parents[1] / "unit" / "kube" / "data" / "live_deployment.json"
US = "modelfleet-controller"
ROUNDS, TIMES = 200, 100


def microseconds(step: Callable[[], object]) -> float:
    """CPU time of one call."""
    return min(timeit.repeat(step, number=TIMES, repeat=ROUNDS, timer=time.process_time)) / TIMES * 1e6


def main() -> None:
    """Print a table."""
    live = msgspec.json.decode(RECORDED.read_bytes())
    wire = msgspec.json.encode(live)
    resource: Resource[None] = Resource(api=DEPLOYMENT, view=lambda _: None, manager=US)
    steps: dict[str, Callable[[], object]] = {
        "decode the wire object": lambda: msgspec.json.decode(wire),
        "project what we own": lambda: owned(live, US),
        "project and digest": lambda: owned_digest(live, US),
        "make the item (metadata, both digests)": lambda: resource.decode(live),
    }
    print(f"{len(wire)} bytes")  # noqa: T201 -- its output is its purpose
    for name, step in steps.items():
        print(f"{microseconds(step):7.1f} us  {name}")  # noqa: T201 -- as above


if __name__ == "__main__":
    main()
