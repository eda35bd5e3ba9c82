"""A process that stands for election and, while it leads, writes as fast as it can.

`python -m test.support.candidate KUBECONFIG NAMESPACE IDENTITY`. Its writes carry no precondition: nothing
but the fence keeps a former leader's write from taking effect. SIGTERM releases the Lease and exits 0; a
lost Lease exits as the controller does. Each write names the process in its User-Agent, for the audit log.
"""

import asyncio
import sys

from modelfleet.kube.auth import load_access
from modelfleet.kube.client import Client
from modelfleet.kube.errors import KubeError
from modelfleet.kube.transport import AiohttpTransport
from modelfleet.plan import Ref
from modelfleet.runtime.leader import LeaderElector, LeaderLost
from modelfleet.runtime.lease import LEASE, LeaseTimes
from modelfleet.runtime.metrics import Metrics
from modelfleet.runtime.process import Exit, exit_now, stop_signals
from test.support.kinds import CONFIG_MAP

LEASE_NAME = "election"
WITNESS = "witness"
TIMES = LeaseTimes(duration=3, renew_deadline=2.0, retry_period=0.5)
"""As short as whole seconds and the rule lease > renew > 1.2 * retry allow."""


def elector_of(client: Client, namespace: str, identity: str) -> LeaderElector:
    """One candidate for the Lease of a namespace."""
    return LeaderElector(
        client,
        lease=Ref(LEASE, namespace, LEASE_NAME),
        identity=identity,
        manager="test",
        times=TIMES,
        metrics=Metrics(version="test").leader(LEASE_NAME),
    )


async def write_for_ever(client: Client, namespace: str, identity: str) -> None:
    """Write to the witness without pause; what is refused, by the fence or the server, is just repeated."""
    witness = Ref(CONFIG_MAP, namespace, WITNESS)
    while True:
        try:
            await client.patch(witness, {"data": {"writer": identity}}, manager="test")
        except KubeError:
            await asyncio.sleep(0)


async def main(kubeconfig: str, namespace: str, identity: str) -> int:
    """Live until stopped or lost."""
    transport = AiohttpTransport(await load_access(kubeconfig))
    client = Client(transport, user_agent=identity)
    elector = elector_of(client, namespace, identity)
    client.fence = elector.fence
    stopping = asyncio.Event()
    with stop_signals(stopping.set, exit_now):
        election = asyncio.create_task(elector.run())
        writer = asyncio.create_task(write_for_ever(client, namespace, identity))
        stop = asyncio.create_task(stopping.wait())
        await asyncio.wait({election, stop}, return_when=asyncio.FIRST_COMPLETED)
        if election.done() and isinstance(election.exception(), LeaderLost):
            exit_now(Exit.LEADER_LOST)
        for task in (writer, election):
            task.cancel()
        await asyncio.gather(writer, election, return_exceptions=True)
        await elector.release()
    await transport.close()
    return Exit.CLEAN


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*sys.argv[1:])))
