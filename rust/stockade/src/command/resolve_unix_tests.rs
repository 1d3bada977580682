use std::ffi::OsString;

use super::*;
use crate::command::files::OsFileSystem;
use crate::command::server::Inherit;
use crate::error::ErrorKind;

#[path = "model_files.rs"]
mod model_files;

use model_files::{Model, Node, errno};

/// Resolve in `/host`, with `PATH` as the only variable.
fn look(
    command: &str,
    cwd: Option<&str>,
    path: Option<&str>,
    files: &dyn FileSystem,
) -> Result<ResolvedCommand, Error> {
    let server = Server::new(
        command.into(),
        vec!["-y".into()],
        cwd.map(Into::into),
        vec![],
        Inherit::All,
    )?;
    let environment = server.environment(path.map(|path| (OsString::from("PATH"), path.into())));
    resolve(&server, &environment, Path::new("/host"), files)
}

fn refusal(command: &str, path: &str, files: &dyn FileSystem) -> Error {
    let error = look(command, None, Some(path), files).expect_err("it was found");
    assert!(!error.message.is_empty() && !error.remedy.is_empty() && error.filename.is_some());
    error
}

fn reasons(tried: &[Candidate]) -> Vec<(&str, &str)> {
    tried
        .iter()
        .map(|candidate| (candidate.path.to_str().unwrap(), &*candidate.reason))
        .collect()
}

#[test]
fn the_first_on_the_servers_path_is_taken_and_all_are_told() {
    let files = Model::default()
        .directory("/a/npx")
        .data("/b/npx")
        .program("/d/npx")
        .program("/e/npx");
    let found = look("npx", None, Some("/a:/b:/c:/d:/e"), &files).unwrap();
    assert_eq!(
        (found.kind, found.program.to_str()),
        (CommandKind::Executable, Some("/d/npx"))
    );
    assert_eq!(found.argv, ["npx", "-y"]);
    assert_eq!((found.command_line, found.working_directory), (None, None));
    let expected = [
        ("/a/npx", "is a directory"),
        ("/b/npx", "is not executable"),
        ("/c/npx", "does not exist"),
        ("/d/npx", "found"),
    ];
    assert_eq!(reasons(&found.tried), expected);
}

#[test]
fn the_current_directory_is_never_searched() {
    let files = Model::default()
        .program("/host/npx")
        .program("/host/bin/npx")
        .program("/work/npx")
        .directory("/work");
    for path in ["", ":", ".", "bin", ":./bin:", "~"] {
        let error = look("npx", Some("/work"), Some(path), &files).unwrap_err();
        assert_eq!(
            (error.kind, error.code),
            (ErrorKind::CommandNotFound, "command-not-found"),
            "{path:?}"
        );
        assert!(
            error
                .tried
                .iter()
                .all(|candidate| candidate.reason.starts_with("skipped: "))
        );
        assert!(
            error.message.contains("no folder could be searched"),
            "{}",
            error.message
        );
        assert!(error.remedy.contains("\"./npx\""), "{}", error.remedy);
    }
    let found = look("npx", None, Some("::bin:/a"), &files.program("/a/npx")).unwrap();
    let skipped: Vec<_> = found
        .tried
        .iter()
        .map(|candidate| candidate.reason.starts_with("skipped: "))
        .collect();
    assert_eq!(skipped, [true, true, true, false]);
}

#[test]
fn without_a_path_the_system_folders_are_searched() {
    let files = Model::default().program("/bin/cat");
    let found = look("cat", None, None, &files).unwrap();
    let places = [
        ("/usr/local/bin/cat", "does not exist"),
        ("/usr/bin/cat", "does not exist"),
        ("/bin/cat", "found"),
    ];
    assert_eq!(reasons(&found.tried), places);
    let error = look("dog", None, None, &files).unwrap_err();
    assert!(
        error.message.contains("the server has no PATH"),
        "{}",
        error.message
    );
}

#[test]
fn a_command_that_is_nowhere_is_not_found() {
    let error = refusal("npx", "/a:rel:/b", &Model::default());
    assert_eq!(
        (error.kind, error.code, error.stage.as_str()),
        (ErrorKind::CommandNotFound, "command-not-found", "resolve")
    );
    assert_eq!(
        error.message,
        "The command \"npx\" was not found on the server's PATH: 2 folders were searched, 1 relative entry skipped."
    );
    assert!(error.remedy.contains("Node.js"));
    assert_eq!(error.filename.as_deref(), Some(Path::new("npx")));
    assert_eq!(error.tried.len(), 3);
}

#[test]
fn the_remedy_fits_the_mistake() {
    let files = Model::default();
    assert!(
        refusal("npx -y server", "/a", &files)
            .remedy
            .contains("args")
    );
    assert!(
        refusal("~/bin/server", "/a", &files)
            .remedy
            .contains("expanded")
    );
    assert!(
        refusal("${HOME}/server", "/a", &files)
            .remedy
            .contains("expanded")
    );
    assert!(
        refusal("./server", "/a", &files)
            .remedy
            .contains("working directory")
    );
    assert!(
        refusal("/opt/server", "/a", &files)
            .remedy
            .contains("Correct the path")
    );

    let env = vec![("PATH".into(), "/mine".into())];
    let server = Server::new("uvx".into(), vec![], None, env, Inherit::Safe(vec![])).unwrap();
    let environment = server.environment([("PATH".into(), "/a".into())]);
    let error = resolve(
        &server,
        &environment,
        Path::new("/host"),
        &files.program("/a/uvx"),
    )
    .unwrap_err();
    assert!(
        error.remedy.contains("Install uv") && error.remedy.contains("PATH in env"),
        "{}",
        error.remedy
    );
    assert_eq!(reasons(&error.tried), [("/mine/uvx", "does not exist")]);
}

#[test]
fn a_path_counts_from_the_servers_working_directory() {
    let files = Model::default()
        .directory("/host/work")
        .program("/host/work/bin/s")
        .program("/host/s");
    let program = |command, cwd| look(command, cwd, Some("/a"), &files).map(|found| found.program);
    assert_eq!(
        program("bin/s", Some("work")).unwrap(),
        Path::new("/host/work/bin/s")
    );
    assert_eq!(program("./s", None).unwrap(), Path::new("/host/./s"));
    assert_eq!(
        program("/host/s", Some("work")).unwrap(),
        Path::new("/host/s")
    );
    assert!(program("bin/s", None).is_err());
    let found = look("./bin/s", Some("work"), None, &files).unwrap();
    assert_eq!(found.argv[0], "./bin/s");
    assert_eq!(
        found.working_directory.as_deref(),
        Some(Path::new("/host/work"))
    );
}

#[test]
fn a_bad_working_directory_is_told_before_the_command_is_looked_for() {
    let files = Model::default()
        .data("/file")
        .with("/closed", Node::Directory { executable: false })
        .with("/behind", Node::Error(errno::EACCES))
        .with("/loop", Node::Error(errno::ELOOP));
    for (cwd, code, native_code) in [
        ("/none", "cwd-missing", Some(errno::ENOENT)),
        ("/file", "cwd-not-a-directory", None),
        ("/file/in", "cwd-not-a-directory", Some(errno::ENOTDIR)),
        ("/closed", "cwd-no-access", None),
        ("/behind", "cwd-no-access", Some(errno::EACCES)),
        ("/loop", "resolve-failed", Some(errno::ELOOP)),
    ] {
        let error = look("nowhere", Some(cwd), Some("/a"), &files).unwrap_err();
        assert_eq!(
            (error.kind, error.code, error.native_code),
            (ErrorKind::Launch, code, native_code),
            "{cwd}"
        );
        assert_eq!(error.operation, native_code.map(|_| "stat"));
        assert_eq!(error.filename.as_deref(), Some(Path::new(cwd)));
    }
}

#[test]
fn each_unusable_program_has_its_own_error() {
    let files = Model::default()
        .directory("/a/directory")
        .data("/a/data")
        .with("/a/fifo", Node::Fifo)
        .script("/a/text", b"import sys")
        .script("/a/empty", b"")
        .script("/a/marked", b"\xEF\xBB\xBF#!/bin/sh\n")
        .script("/a/nameless", b"#!\n")
        .script("/a/orphan", b"#!/venv/bin/python\n")
        .script("/a/relative", b"#!python\n")
        .script("/a/windows", b"#!/a/sh\r\n")
        .program("/a/sh")
        .with("/a/loop", Node::Error(errno::ELOOP))
        .with("/a/broken", Node::Error(errno::EIO))
        .with("/a/closed", Node::Error(errno::EACCES));
    for (command, code, words) in [
        ("/a/directory", "is-a-directory", "is a directory"),
        ("/a/data", "not-executable", "may not be executed"),
        ("/a/fifo", "not-executable", "not a regular file"),
        ("/a/text", "no-shebang", "without a #! line"),
        ("/a/empty", "no-shebang", "is empty"),
        ("/a/marked", "no-shebang", "byte order mark"),
        ("/a/nameless", "no-interpreter", "names no interpreter"),
        ("/a/orphan", "no-interpreter", "\"/venv/bin/python\""),
        ("/a/relative", "no-interpreter", "\"python\""),
        ("/a/windows", "no-interpreter", "\"/a/sh\\r\""),
        ("/a/loop", "resolve-failed", "could not be looked up"),
        ("/a/broken", "resolve-failed", "could not be looked up"),
        ("/a/closed", "resolve-failed", "could not be looked up"),
    ] {
        let error = refusal(command, "", &files);
        assert_eq!(
            (error.kind, error.code),
            (ErrorKind::Launch, code),
            "{command}"
        );
        assert!(error.message.contains(words), "{}", error.message);
        assert_eq!(
            (error.filename.as_deref(), error.tried.len()),
            (Some(Path::new(command)), 1)
        );
        assert_eq!(error.operation.is_some(), code == "resolve-failed");
    }
    assert!(
        refusal("/a/windows", "", &files)
            .remedy
            .contains("line endings")
    );
    for gone in ["/a/none", "/a/data/in"] {
        assert_eq!(refusal(gone, "", &files).code, "command-not-found");
    }
}

#[test]
fn on_path_only_a_file_that_is_not_executable_is_passed_over() {
    let files = Model::default()
        .data("/a/s")
        .script("/b/s", b"text")
        .program("/c/s")
        .data("/d/t")
        .directory("/e/t");
    assert_eq!(
        look("s", None, Some("/a:/c"), &files).unwrap().program,
        Path::new("/c/s")
    );
    let error = refusal("s", "/a:/b:/c", &files);
    assert_eq!((error.code, error.tried.len()), ("no-shebang", 2));
    let error = refusal("t", "/c:/d:/e", &files);
    assert_eq!(
        (error.code, error.filename.as_deref()),
        ("not-executable", Some(Path::new("/d/t")))
    );
    assert_eq!(error.tried.len(), 3);
    assert_eq!(refusal("t", "/c:/e", &files).code, "command-not-found");
    let error = refusal("s", "/a:/d", &files.data("/d/s"));
    assert_eq!(error.filename.as_deref(), Some(Path::new("/a/s")));
}

#[test]
fn folders_that_cannot_be_searched_are_told_and_passed_over() {
    let files = Model::default()
        .with("/a/s", Node::Error(errno::EACCES))
        .with("/b/s", Node::Error(errno::ELOOP))
        .with("/c/s", Node::Error(errno::ENAMETOOLONG))
        .data("/d")
        .program("/e/s");
    let found = look("s", None, Some("/a:/b:/c:/d:/e"), &files).unwrap();
    let told = reasons(&found.tried);
    assert_eq!(told[0].1, "lies in a directory without access");
    assert!(told[1].1.contains("os error") && told[2].1.contains("os error"));
    assert_eq!(told[3].1, "lies in something that is not a directory");
    assert_eq!(
        refusal("s", "/a:/b:/c:/d", &files).code,
        "command-not-found"
    );
}

#[test]
fn what_env_will_not_find_is_refused() {
    let env = |line: &str| {
        let files = Model::default()
            .program("/usr/bin/env")
            .program("/n/node")
            .program("/host/rel/deno");
        files.script("/a/s", line.as_bytes())
    };
    let code = |line: &str, path| {
        look("s", None, Some(path), &env(line))
            .map_err(|error| error.code)
            .map(|_| "found")
    };
    assert_eq!(code("#!/usr/bin/env node\n", "/a:/n"), Ok("found"));
    assert_eq!(code("#!/usr/bin/env node\n", "/a"), Err("no-interpreter"));
    assert_eq!(code("#!/usr/bin/env -S node --x\n", "/a:/n"), Ok("found"));
    assert_eq!(
        code("#!/usr/bin/env -S node --x\n", "/a"),
        Err("no-interpreter")
    );
    assert_eq!(
        code("#!/usr/bin/env node\r\n", "/a:/n"),
        Err("no-interpreter")
    );
    assert_eq!(code("#!/usr/bin/env -i node\n", "/a"), Ok("found"));
    // env searches relative folders, and takes paths.
    assert_eq!(code("#!/usr/bin/env deno\n", "/a:rel"), Ok("found"));
    assert_eq!(code("#!/usr/bin/env ./rel/deno\n", "/a"), Ok("found"));
    assert_eq!(code("#!/usr/bin/env ./node\n", "/a"), Err("no-interpreter"));
    assert_eq!(
        code("#!/usr/local/bin/env node\n", "/a:/n"),
        Err("no-interpreter")
    );

    let error = refusal("s", "/a", &env("#!/usr/bin/env node\n"));
    assert_eq!(
        error.message,
        "\"/a/s\" is a script for \"node\", which is not on the server's PATH."
    );
    let error = refusal("s", "/a:/n", &env("#!/usr/bin/env node\r\n"));
    assert!(error.remedy.contains("line endings"));
}

#[cfg(not(target_os = "macos"))]
#[test]
fn env_with_arguments_but_without_s_is_refused() {
    let files = Model::default()
        .program("/usr/bin/env")
        .program("/a/node")
        .script("/a/s", b"#!/usr/bin/env node --x\n");
    let error = refusal("s", "/a", &files);
    assert!(
        error.message.contains("\"node --x\"") && error.remedy.contains("env -S"),
        "{error}"
    );
}

#[test]
fn a_program_that_cannot_be_read_is_not_judged() {
    let files = Model::default().with("/a/s", Node::Unreadable);
    assert_eq!(
        look("s", None, Some("/a"), &files).unwrap().program,
        Path::new("/a/s")
    );
}

#[test]
fn a_path_of_300_folders_is_looked_at_once_each() {
    let path: Vec<String> = (0..300).map(|number| format!("/folder/{number}")).collect();
    let files = Model::default().program("/folder/299/s");
    let found = look("s", None, Some(&path.join(":")), &files).unwrap();
    assert_eq!((found.tried.len(), files.looked.get()), (300, 300));
}

#[test]
fn messages_stay_on_one_line() {
    let error = refusal("evil\n\x1B[31m\u{202E}command", "/a", &Model::default());
    assert!(
        error
            .to_string()
            .chars()
            .all(|char| !char.is_control() && char != '\u{202E}'),
        "{error:?}"
    );
}

#[test]
fn secrets_are_not_shown() {
    let files = Model::default().program("/a/s");
    let server = Server::new(
        "s".into(),
        vec!["--key=hunter2".into()],
        None,
        vec![],
        Inherit::All,
    )
    .unwrap();
    let environment = server.environment([("PATH".into(), "/a".into())]);
    let found = resolve(&server, &environment, Path::new("/host"), &files).unwrap();
    assert_eq!(found.argv[1], "--key=hunter2");
    assert!(!format!("{found:?}").contains("hunter2"));
}

mod on_this_machine {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    /// A folder of its own, removed at the end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path =
                env::temp_dir().join(format!("stockade-resolve-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path.canonicalize().unwrap())
        }

        fn write(&self, name: &str, mode: u32, text: &str) {
            let path = self.0.join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }

        fn code(&self, command: &str) -> Result<PathBuf, &'static str> {
            let path = format!("{}:/usr/bin:/bin", self.0.display());
            let found = look(command, None, Some(&path), &OsFileSystem);
            found.map(|found| found.program).map_err(|error| error.code)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn real_files_give_the_same_answers() {
        let folder = Folder::new("files");
        folder.write("script", 0o755, "#!/bin/sh\n");
        folder.write("orphan", 0o755, "#!/no/such/interpreter\n");
        folder.write("text", 0o755, "echo\n");
        folder.write("data", 0o644, "#!/bin/sh\n");
        symlink("script", folder.0.join("link")).unwrap();
        symlink("loop", folder.0.join("loop")).unwrap();
        symlink("gone", folder.0.join("dangling")).unwrap();
        assert_eq!(folder.code("script"), Ok(folder.0.join("script")));
        assert_eq!(folder.code("link"), Ok(folder.0.join("link")));
        assert_eq!(folder.code("orphan"), Err("no-interpreter"));
        assert_eq!(folder.code("text"), Err("no-shebang"));
        assert_eq!(folder.code("data"), Err("not-executable"));
        assert_eq!(folder.code("loop"), Err("command-not-found"));
        assert_eq!(folder.code("dangling"), Err("command-not-found"));
        assert_eq!(folder.code(&"x".repeat(5000)), Err("command-not-found"));
        let path = |name: &str| folder.0.join(name).to_str().unwrap().to_owned();
        assert_eq!(folder.code(&path("loop")), Err("resolve-failed"));
        assert_eq!(folder.code(&path(&"x".repeat(5000))), Err("resolve-failed"));
        assert_eq!(folder.code(&path("script/below")), Err("command-not-found"));
    }

    #[test]
    fn every_program_of_the_system_is_accepted() {
        for name in ["sh", "cat", "env", "ls"] {
            let found = look(name, None, Some("/usr/bin:/bin"), &OsFileSystem).unwrap();
            assert!(found.program.is_absolute(), "{name}");
        }
    }
}
