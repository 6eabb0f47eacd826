"""What may stand between a client and a PostgreSQL server: a proxy that cuts, stalls or swallows.

While it is silent it goes on accepting and acknowledging, as a NAT or a pooler does whose other
side is gone: no client is ever told. A cut resets the connection before or after what the client
said was passed on; after it, whether that was done is unknown to the client.
"""

import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Literal, Self

Cut = Literal["before", "after"]
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close with RST


class Proxy:
    """Passes on what is said to the server at `port`; `self.port` is where to say it.

    `decide`, where given, is asked for everything a client says. It listens at `host`.
    """

    def __init__(
        self,
        port: int,
        decide: Callable[[bytes], Cut | None] | None = None,
        host: str = "127.0.0.1",
    ) -> None:
        self._server = port
        self.decide: Callable[[bytes], Cut | None] = decide or (lambda said: None)
        self._hears = threading.Event()
        self._hears.set()
        self._swallows = False
        self._listener = socket.create_server((host, 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def stall(self) -> None:
        """Keep everything to oneself, to be passed on when it ends: commits that come late."""
        self._hears.clear()

    def swallow(self) -> None:
        """Take everything and pass nothing on, ever, of the connections there are."""
        self._swallows = True

    def end_silence(self) -> None:
        self._swallows = False
        self._hears.set()

    def close(self) -> None:
        self.end_silence()
        self._listener.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._connect, args=(client,), daemon=True).start()

    def _connect(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(("127.0.0.1", self._server))
        except OSError:
            _reset(client)
            return
        for end in (client, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        answers = threading.Thread(target=self._pass_on, args=(server, client), daemon=True)
        answers.start()
        self._pass_on(client, server, lambda said: self.decide(said))

    def _pass_on(
        self,
        source: socket.socket,
        target: socket.socket,
        decide: Callable[[bytes], Cut | None] = lambda said: None,
    ) -> None:
        is_lost = False
        with suppress(OSError):
            while said := source.recv(65536):
                cut = decide(said)
                is_lost = is_lost or self._swallows
                self._hears.wait()
                if cut != "before" and not is_lost:
                    target.sendall(said)
                if cut is not None:
                    _reset(source)
                    break
        # what follows a lost piece would be nonsense to the server: it hears nothing more
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)


def _reset(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        connection.shutdown(socket.SHUT_RD)  # wakes whoever reads it
        connection.close()
