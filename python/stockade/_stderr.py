"""What a server has written to its stderr."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from . import _native


@final
class StderrRing:
    """The last lines of a server's stderr, as bytes, without newlines. Readable after its end too."""

    __slots__ = ("_session",)

    def __init__(self, session: _native.Session) -> None:
        self._session = session

    def tail(self, lines: int = 50) -> list[bytes]:
        """At most so many of the last lines."""
        return self._session.stderr_tail(lines)

    def text(self) -> str:
        """All lines that are still known, sanitised."""
        return self._session.stderr_text()

    @property
    def lines_seen(self) -> int:
        return self._session.stderr_lines_seen

    @property
    def bytes_seen(self) -> int:
        return self._session.stderr_bytes_seen

    @property
    def dropped(self) -> int:
        """Lines that are no longer known."""
        return self._session.stderr_dropped

    @property
    def sink_lost(self) -> int:
        """Lines that came too fast for the sink: it never got them."""
        return self._session.sink_lost

    def __repr__(self) -> str:
        return f"<StderrRing lines_seen={self.lines_seen} dropped={self.dropped}>"
