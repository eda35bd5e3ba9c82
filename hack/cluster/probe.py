"""HTTP health endpoints on loopback."""

import http.client

from hack.cluster.controlplane import LOOPBACK

TIMEOUT_SECONDS = 2.0


def answers(port: int, path: str) -> bool:
    """True when a GET is answered with 200."""
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=TIMEOUT_SECONDS)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
