"""Finding the program and composing its environment: what may be in the way."""

from __future__ import annotations

import json
import os
from pathlib import Path

import anyio
import pytest

from stockade import CommandNotFoundError, ConfigError, LaunchError, ServerProcess, StdioServer, resolve
from tests.faults import hung_files
from tests.faults.hosts import Host
from tests.servers import script


def test_a_path_of_three_hundred_entries_is_searched_in_order_and_every_candidate_is_named(tmp_path: Path) -> None:
    # fault 35
    folders = [tmp_path / f"{number}" for number in range(300)]
    for folder in folders[::2]:
        folder.mkdir()
    server = StdioServer("the-tool", env={"PATH": os.pathsep.join(map(str, folders))})
    with pytest.raises(CommandNotFoundError) as caught:
        resolve(server)
    assert [candidate.path for candidate in caught.value.tried] == [str(folder / "the-tool") for folder in folders]
    tool = folders[200] / "the-tool"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    assert resolve(server).program == str(tool)


HUNG_PATH = """\
import time
from pathlib import Path
from stockade import StartupTimeout, StdioTransport
from tests.faults.hung_files import Hung

hung = Hung(Path(sys.argv[1]))
server = StdioServer("the-tool", env={"PATH": sys.argv[1] + ":/usr/bin:/bin"})

async def main():
    # Bounded by the start-up time.
    transport = StdioTransport(server, stderr=None, startup_timeout=0.3)
    begun = time.monotonic()
    try:
        async with transport:
            pass
    except StartupTimeout as error:
        say(error=str(error), took=time.monotonic() - begun)
    # Cancellable.
    begun = time.monotonic()
    with anyio.move_on_after(0.2) as scope:
        await ServerProcess.launch(server, stderr=None)
    say(cancelled=scope.cancelled_caught, took=time.monotonic() - begun)
    # Others aren't held up.
    async with await ServerProcess.launch(StdioServer("cat"), stderr=None) as other:
        await other.send(b"fine")
        say(other=(await other.receive()).decode())
    hung.asked()
    hung.close()

anyio.run(main, backend=sys.argv[2])
"""


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_folder_on_the_path_that_hangs_holds_up_its_launch_alone_and_not_for_ever(
    tmp_path: Path, backend: str
) -> None:
    # fault 35
    why = hung_files.missing()
    if why is not None:
        pytest.skip(why)
    pytest.importorskip("mcp")
    with Host(HUNG_PATH, tmp_path, backend, under=hung_files.UNDER) as host:
        facts = host.heard()
        assert "0.3 s" in facts["error"]
        assert facts["took"] < 10
        facts = host.heard()
        assert facts["cancelled"] is True
        assert facts["took"] < 10
        assert host.heard() == {"other": "fine"}
        assert host.ended() == (0, "")


ENVIRONMENT = "import json, os\nprint(json.dumps(dict(os.environ)), flush=True)"


async def environment_of(**options: object) -> dict[str, str]:
    async with await ServerProcess.launch(script(ENVIRONMENT, **options), stderr=None) as process:
        with anyio.fail_after(30):
            found: dict[str, str] = json.loads(await process.receive())
            return found


async def test_what_steers_a_loader_or_an_interpreter_is_not_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    # fault 36
    dangerous = {
        "LD_PRELOAD": "/nonexistent/evil.so",
        "LD_LIBRARY_PATH": "/nonexistent",
        "DYLD_INSERT_LIBRARIES": "/nonexistent",
        "NODE_OPTIONS": "--require=/nonexistent",
        "PYTHONSTARTUP": "/nonexistent",
        "BASH_ENV": "/nonexistent",
        "A_SECRET_TOKEN": "hunter2",
    }
    for name, value in dangerous.items():
        monkeypatch.setenv(name, value)
    assert not set(await environment_of()) & set(dangerous)
    # Who wants them says so.
    chosen = await environment_of(inherit=["NODE_OPTIONS"], env={"BASH_ENV": "mine"})
    assert (chosen["NODE_OPTIONS"], chosen["BASH_ENV"]) == ("--require=/nonexistent", "mine")
    assert "A_SECRET_TOKEN" not in chosen
    everything = await environment_of(inherit="all", env={"LD_PRELOAD": "", "LD_LIBRARY_PATH": ""})
    assert everything["A_SECRET_TOKEN"] == "hunter2"


@pytest.mark.parametrize("env", [{"A": "b\0c"}, {"A\0": "b"}, {"A=B": "c"}, {"": "c"}])
def test_a_variable_that_cannot_be_is_refused_without_its_value(env: dict[str, str]) -> None:
    # fault 36
    with pytest.raises(ConfigError) as caught:
        StdioServer("cat", env={**env, "SECRET": "hunter2"})
    assert "hunter2" not in str(caught.value)


async def test_names_that_differ_by_case_alone_are_different_here() -> None:
    # fault 36
    found = await environment_of(env={"Name": "1", "NAME": "2", "name": "3"})
    assert (found["Name"], found["NAME"], found["name"]) == ("1", "2", "3")


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_program_replaced_at_any_time_is_the_old_or_the_new_one(tmp_path: Path) -> None:
    # fault 37: nothing pins a program that no policy names; it is one or the other, whole
    import threading

    tool = tmp_path / "tool"

    def replace(word: str) -> None:
        new = tmp_path / f"new-{word}"
        new.write_text(f"#!/bin/sh\necho {word}\ncat\n")
        new.chmod(0o755)
        new.rename(tool)

    replace("old")
    resolved = resolve(StdioServer(tool))
    replace("new")
    seen = set()
    async with await ServerProcess.launch(StdioServer(tool), stderr=None) as process:
        with anyio.fail_after(30):
            assert await process.receive() == b"new"
            assert process.command.program == resolved.program == str(tool)
    stop = threading.Event()

    def replace_on_and_on() -> None:
        turn = 0
        while not stop.is_set():
            turn += 1
            replace(["old", "new"][turn % 2])

    replacer = threading.Thread(target=replace_on_and_on)
    replacer.start()
    try:
        with anyio.fail_after(60):
            for _ in range(40):
                async with await ServerProcess.launch(StdioServer(tool), stderr=None) as process:
                    seen.add(await process.receive())
    finally:
        stop.set()
        replacer.join()
    assert seen <= {b"old", b"new"}


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_program_that_is_gone_before_its_start_is_a_typed_error(tmp_path: Path) -> None:
    # fault 37
    tool = tmp_path / "tool"
    tool.write_text("#!/nonexistent/interpreter\n")
    tool.chmod(0o755)
    with pytest.raises((LaunchError, CommandNotFoundError)) as caught:
        await ServerProcess.launch(StdioServer(tool), stderr=None)
    assert "/nonexistent/interpreter" in str(caught.value)
    tool.unlink()
    with pytest.raises(CommandNotFoundError):
        await ServerProcess.launch(StdioServer(tool), stderr=None)
