"""kubernetes_asyncio in a process of its own: one request with each kubeconfig it is asked about.

Its import takes seconds and 70 MB, and it remembers KUBECONFIG and credentials in globals; here none of that
reaches the tests. Reads lines of JSON {"kubeconfig", "context"} and answers each with one line: what the
server answered, or {"failed": TYPE OF THE EXCEPTION}.
"""

import asyncio
import json
import sys
import traceback
from typing import Any

from kubernetes_asyncio.client import VersionApi
from kubernetes_asyncio.config import new_client_from_config

REQUEST_SECONDS = 10
"""The server is in the process that asks."""


async def ask(kubeconfig: str, context: str | None) -> Any:
    """Load, send GET /version/, give back the decoded answer."""
    async with await new_client_from_config(kubeconfig, context, persist_config=False) as client:
        answer: Any = await VersionApi(client).get_code(
            _preload_content=False, _request_timeout=REQUEST_SECONDS
        )
        return await answer.json()


def main() -> None:
    """Answer until the input ends."""
    for line in sys.stdin:
        try:
            answer = asyncio.run(ask(**json.loads(line)))
        except Exception as error:  # noqa: BLE001 -- whatever it fails with is the answer
            traceback.print_exc()
            answer = {"failed": type(error).__name__}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
