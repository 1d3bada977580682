"""`stockade run`: the server on this process's own stdin, stdout and stderr."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from stockade import _native
from stockade._errors import CommandNotFoundError, LaunchError, StockadeError

from .output import complain
from .parser import RUN_FAILED
from .servers import described

if TYPE_CHECKING:
    from .parser import Options

CANT_START = 126
NOT_FOUND = 127


def execute(options: Options) -> int:
    """Become the server's supervisor; returns only where that isn't possible, or failed."""
    try:
        # The client has composed this environment for the server already.
        server, _ = described(options, inherit="all")
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        return _native.run(server._native)
    except CommandNotFoundError as error:
        complain(str(error))
        return NOT_FOUND
    except LaunchError as error:
        complain(str(error))
        return CANT_START
    except StockadeError as error:
        complain(str(error))
        return RUN_FAILED
