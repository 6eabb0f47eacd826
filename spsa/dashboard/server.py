"""A socket, and uvicorn on it until a signal ends it."""

import logging
import signal
import socket
import sys
from collections.abc import Callable

import uvicorn

from spsa.dashboard.app import application
from spsa.dashboard.guard import Token
from spsa.db.store import Store


def serve(
    store: Store, host: str, port: int, token: Token | None, announce: Callable[[str], None]
) -> None:
    """Answer requests; `announce` is told the address, in which port 0 has become a real one.

    Raises:
        OSError: the address cannot be listened on.
    """
    logging.getLogger("uvicorn.error").setLevel(
        logging.CRITICAL
    )  # the application tells of its own
    with _listening(host, port) as listener:
        config = uvicorn.Config(
            application(store, token),
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="on",
            timeout_graceful_shutdown=3,
        )
        shown = f"[{host}]" if ":" in host else host
        # uvicorn hands a signal on when it has closed its connections; this one ends well
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        announce(f"http://{shown}:{listener.getsockname()[1]}/")
        uvicorn.Server(config).run(sockets=[listener])


def _listening(host: str, port: int) -> socket.socket:
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address, family=family)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), f"{host}:{port}") from None
