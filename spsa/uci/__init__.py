"""One engine process: its protocol, its limits, and `system`: what the operating system gives."""

import sys

if sys.platform == "linux":
    from spsa.uci import linux as system
else:
    from spsa.uci import plain as system

__all__ = ["system"]
