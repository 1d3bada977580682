"""The command line's words: what may be said, and what was said."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Sequence

USAGE = 2
QUOTED_JSON = """Put the JSON in single quotes: '{"message": "hi"}'."""
RUN_FAILED = 125
"""What `run` ends with when stockade itself fails, wrong usage included; as env(1) does."""

_DESCRIPTION = "Start an MCP stdio server, speak to it, and end it with all its processes."

_COMMANDS = (
    ("run", "start a server on this terminal's or client's own stdin and stdout"),
    ("tools", "list a server's tools"),
    ("call", "call one of a server's tools"),
    ("resolve", "say what would be started, without starting it"),
    ("doctor", "say what this machine offers and what is missing"),
)

_SERVER_USAGE = (
    "stockade {command} [options]{extra} -- COMMAND [ARG …]\n"
    "       stockade {command} [options]{extra} --config FILE NAME"
)

_EPILOGS = {
    "run": (
        "The server gets this process's own stdin, stdout and stderr, and its whole process tree ends with it.\n"
        "Exit status: the server's (128 + n for a signal); 125 stockade failed, 126 the command can't be started,\n"
        "127 there is no such command."
    ),
    "tools": "Exit status: 0; 1 the server failed; 2 wrong usage; 130 Ctrl-C.",
    "call": "Exit status: 0; 1 the tool answered with an error, or the server failed; 2 wrong usage; 130 Ctrl-C.",
    "resolve": "Exit status: 0; 1 there is no such command, or it can't be started; 2 wrong usage.",
    "doctor": "Exit status: 0; 2 wrong usage.",
}


class UsageError(Exception):
    """The command line can't be understood. Never quotes a value: it may be a secret."""

    def __init__(self, message: str, *, command: str | None = None) -> None:
        see = f"stockade {command} --help" if command else "stockade --help"
        super().__init__(f"{message} See '{see}'.")
        self.status = RUN_FAILED if command == "run" else USAGE


class Options(argparse.Namespace):
    """What was said."""

    command: str
    words: list[str]
    """What stood after `--`."""
    config: tuple[str, str] | None = None
    cwd: str | None = None
    env: Sequence[str] = ()
    inherit: Sequence[str] = ()
    json: bool = False
    tool: str = ""
    arguments: str | None = None
    timeout: float = 120.0
    """Seconds for the whole conversation of `tools` or `call`."""

    @property
    def failure(self) -> int:
        """The exit status of a failure of our own."""
        return RUN_FAILED if self.command == "run" else 1


class _Parser(argparse.ArgumentParser):
    stockade_command: str | None = None

    def error(self, message: str) -> NoReturn:
        # argparse quotes what it doesn't understand; only the option's name is kept of it.
        raise UsageError(_sentence(message), command=self.stockade_command)


def parse(arguments: list[str]) -> Options:
    """What was said; `UsageError` where it can't be understood. `--help` and `--version` end the process."""
    words: list[str] | None = None
    if "--" in arguments:
        # By hand: what argparse makes of `--` depends on Python's version.
        at = arguments.index("--")
        arguments, words = arguments[:at], arguments[at + 1 :]
    options, unknown = _parser().parse_known_args(arguments, Options())
    if unknown:
        _refuse(unknown, options.command, separated=words is not None)
    options.words = words or []
    if options.command == "doctor":
        if words:
            raise UsageError("doctor takes no command.", command="doctor")
    elif options.config is not None and words is not None:
        raise UsageError("Give either --config or a command after --, not both.", command=options.command)
    elif options.config is None and not words:
        raise UsageError("Say which server: its command after --, or --config FILE NAME.", command=options.command)
    return options


def _parser() -> _Parser:
    parser = _Parser(
        prog="stockade", description=_DESCRIPTION, allow_abbrev=False,
        epilog="In place of -- COMMAND, --config FILE NAME takes a server from an mcp.json file.",
    )  # fmt: skip
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=_Parser)
    for name, summary in _COMMANDS:
        command = commands.add_parser(
            name, help=summary, description=summary[0].upper() + summary[1:] + ".", allow_abbrev=False,
            usage=_usage(name), epilog=_EPILOGS[name], formatter_class=argparse.RawDescriptionHelpFormatter,
        )  # fmt: skip
        command.stockade_command = name
        if name == "call":
            command.add_argument("tool", metavar="TOOL", help="the tool's name")
            command.add_argument(
                "arguments", metavar="JSON", nargs="?", help='its arguments, such as \'{"message": "hi"}\''
            )
        if name != "doctor":
            _add_server(command, default="all" if name == "run" else "safe")
        if name in ("tools", "call"):
            command.add_argument(
                "--timeout", type=_seconds, default=120.0, metavar="SECONDS",
                help="how long it may take in all, the server's start included; default: 120",
            )  # fmt: skip
        if name != "run":
            command.add_argument("--json", action="store_true", help="report as JSON")
    return parser


def _add_server(command: argparse.ArgumentParser, default: str) -> None:
    group = command.add_argument_group("the server")
    group.add_argument(
        "--config", nargs=2, metavar=("FILE", "NAME"), help="take the server of that name from an mcp.json file"
    )
    group.add_argument("--cwd", metavar="DIR", help="its working directory")
    group.add_argument(
        "--env", action="append", default=[], metavar="NAME=VALUE", help="set a variable for it; may be repeated"
    )
    group.add_argument(
        "--inherit", action="append", default=[], metavar="WHAT",
        help="what it gets of this environment: safe (a short list), all, none, or names added to the safe list, "
        f"such as HTTPS_PROXY or 'XDG_*'; may be repeated; default: {default}",
    )  # fmt: skip


def _usage(command: str) -> str:
    if command == "doctor":
        return "stockade doctor [--json]"
    return _SERVER_USAGE.format(command=command, extra=" TOOL [JSON]" if command == "call" else "")


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from stockade._native import __version__

        print(f"stockade {__version__}")
        parser.exit()


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds <= 1e9:
        raise ValueError
    return seconds


def _sentence(message: str) -> str:
    if "invalid choice" in message:
        return f"The commands are {', '.join(name for name, _ in _COMMANDS)}."
    if "required: COMMAND" in message:
        return f"Say what to do: {', '.join(name for name, _ in _COMMANDS)}."
    if "required: TOOL" in message:
        return "Say which tool to call."
    if message.startswith("argument "):
        option, _, reason = message.removeprefix("argument ").partition(": ")
        if reason.startswith("ignored explicit argument"):
            reason = "takes no value"
        if option == "--timeout":
            reason = "needs a number of seconds, more than 0"
        return f"{option}: {reason}."
    return "The command line isn't understood."


def _refuse(unknown: list[str], command: str, *, separated: bool) -> NoReturn:
    option = next((word.partition("=")[0] for word in unknown if word.startswith("-")), None)
    if not unknown[0].startswith("-") and separated and command != "doctor":
        remedy = QUOTED_JSON if command == "call" else "The server's command and its arguments come after it."
        raise UsageError(f"There is a word too many before --. {remedy}", command=command)
    if not unknown[0].startswith("-") and command != "doctor":
        raise UsageError("Put -- before the server's command.", command=command)
    if option is None:
        raise UsageError(f"{command} takes no such word.", command=command)
    raise UsageError(f"There is no option {option!r} (a server's own come after --).", command=command)
