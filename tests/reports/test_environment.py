"""Reports about environments, paths and working directories."""

from __future__ import annotations

import json
import os
from pathlib import Path

import anyio
import pytest

from stockade import CommandNotFoundError, LaunchError, ServerProcess, StdioServer
from tests.servers import script

SHOW = "import json, os\nprint(json.dumps([dict(os.environ), os.getcwd()]), flush=True)"


async def seen_by(**options: object) -> tuple[dict[str, str], str]:
    async with await ServerProcess.launch(script(SHOW, **options), stderr=None) as process:
        with anyio.fail_after(30):
            environment, folder = json.loads(await process.receive())
            return environment, folder


async def test_inheritance_is_one_switch_either_way(monkeypatch: pytest.MonkeyPatch) -> None:
    # report 37
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/7")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/home/config")
    assert "XDG_RUNTIME_DIR" not in (await seen_by())[0]
    assert (await seen_by(inherit=["XDG_*"]))[0]["XDG_CONFIG_HOME"] == "/home/config"
    assert (await seen_by(inherit="all"))[0]["XDG_RUNTIME_DIR"] == "/run/user/7"
    assert set((await seen_by(inherit="none"))[0]) <= {"PYTHONUTF8", "LC_CTYPE"}


async def test_proxies_and_certificates_can_be_had_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    # report 38
    for name in ("HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE"):
        monkeypatch.setenv(name, "corporate")
    seen, _ = await seen_by(inherit=["HTTPS_PROXY", "NO_PROXY", "SSL_CERT_*"])
    assert {seen[name] for name in ("HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE")} == {"corporate"}


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_command_that_is_not_there_is_named_with_every_place_searched(tmp_path: Path) -> None:
    # report 40
    path = f"{tmp_path}/a:{tmp_path}/b"
    with pytest.raises(FileNotFoundError) as caught:
        await ServerProcess.launch(StdioServer("uvx", env={"PATH": path}), stderr=None)
    error = caught.value
    assert isinstance(error, CommandNotFoundError)
    assert (error.errno, error.filename) == (2, "uvx")
    assert "uvx" in str(error)
    assert [found.path for found in error.tried] == [f"{tmp_path}/a/uvx", f"{tmp_path}/b/uvx"]
    assert error.remedy


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_missing_working_directory_is_not_blamed_on_the_command(tmp_path: Path) -> None:
    # report 41
    missing = tmp_path / "gone"
    with pytest.raises(LaunchError) as caught:
        await ServerProcess.launch(StdioServer("cat", cwd=missing), stderr=None)
    assert not isinstance(caught.value, CommandNotFoundError)
    assert str(missing) in str(caught.value)
    assert "cat" not in str(caught.value).replace(str(tmp_path), "")


async def test_the_working_directory_is_the_one_asked_for(tmp_path: Path) -> None:
    # report 43
    assert (await seen_by(cwd=tmp_path))[1] == os.path.realpath(tmp_path)


async def test_the_childs_own_path_decides_what_is_found(tmp_path: Path) -> None:
    # report 40
    tool = tmp_path / "only-here"
    tool.write_text("#!/bin/sh\necho found\n")
    tool.chmod(0o755)
    async with await ServerProcess.launch(
        StdioServer("only-here", env={"PATH": str(tmp_path)}), stderr=None
    ) as process:
        with anyio.fail_after(30):
            assert await process.receive() == b"found"
