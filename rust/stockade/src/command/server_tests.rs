use super::*;

fn server(
    command: &str,
    args: &[&str],
    cwd: Option<&str>,
    env: &[(&str, &str)],
    inherit: Inherit,
) -> Result<Server, Error> {
    let env = env
        .iter()
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    Server::new(
        command.into(),
        args.iter().map(Into::into).collect(),
        cwd.map(Into::into),
        env,
        inherit,
    )
}

fn refused(server: Result<Server, Error>) -> (&'static str, String) {
    let error = server.expect_err("it was accepted");
    assert_eq!(
        (error.kind, error.stage),
        (ErrorKind::Config, Stage::Resolve)
    );
    assert!(!error.remedy.is_empty());
    (error.code, format!("{error:?}"))
}

fn extra(names: &[&str]) -> Inherit {
    Inherit::Safe(names.iter().map(Into::into).collect())
}

#[test]
fn what_is_described_well_is_accepted() {
    let env = [("A", ""), ("lower-case.odd name", "= any \n value")];
    let server = server(
        "npx",
        &["-y", "", "a b"],
        Some("work"),
        &env,
        extra(&["XDG_*"]),
    )
    .unwrap();
    assert_eq!(server.command(), "npx");
    assert_eq!(server.args(), ["-y", "", "a b"]);
    assert_eq!(server.cwd(), Some(Path::new("work")));
    assert_eq!(*server.inherit(), extra(&["XDG_*"]));
}

#[test]
fn a_blank_command_or_working_directory_is_refused() {
    for blank in ["", " ", "\t\n", "\u{A0}"] {
        assert_eq!(
            refused(server(blank, &[], None, &[], Inherit::All)).0,
            "blank-command"
        );
        assert_eq!(
            refused(server("cat", &[], Some(blank), &[], Inherit::All)).0,
            "blank-cwd"
        );
    }
}

#[test]
fn a_nul_is_refused_wherever_it_is_and_no_secret_is_shown() {
    let refusals = [
        (server("c\0at", &[], None, &[], Inherit::All), "command"),
        (
            server("cat", &["fine", "secret\0"], None, &[], Inherit::All),
            "Argument 2 ",
        ),
        (
            server("cat", &[], Some("a\0b"), &[], Inherit::All),
            "working directory",
        ),
        (
            server(
                "cat",
                &[],
                None,
                &[("A", "1"), ("NA\0ME", "secret")],
                Inherit::All,
            ),
            "Name 2 in env",
        ),
        (
            server("cat", &[], None, &[("TOKEN", "secret\0")], Inherit::All),
            "\\\"TOKEN\\\"",
        ),
        (
            server("cat", &[], None, &[], extra(&["A", "B\0"])),
            "Name 2 in inherit",
        ),
    ];
    for (server, words) in refusals {
        let (code, text) = refused(server);
        assert_eq!(code, "nul");
        assert!(
            text.contains(words) && !text.contains("secret") && !text.contains('\0'),
            "{text}"
        );
    }
}

#[test]
fn a_name_that_is_blank_or_holds_a_value_is_refused_without_the_value() {
    for name in ["", "  ", "TOKEN=secret", "=secret"] {
        for server in [
            server(
                "cat",
                &[],
                None,
                &[("A", "secret"), (name, "secret")],
                Inherit::All,
            ),
            server("cat", &[], None, &[], extra(&["A", name])),
        ] {
            let (code, text) = refused(server);
            assert_eq!(code, "env-name");
            assert!(
                text.contains("Name 2 in ") && !text.contains("secret"),
                "{text}"
            );
        }
    }
}

#[test]
fn a_debug_print_shows_no_argument_and_no_value() {
    let server = server(
        "cat",
        &["secret"],
        None,
        &[("TOKEN", "secret")],
        Inherit::All,
    )
    .unwrap();
    let text = format!("{server:?}");
    assert!(text.contains("cat") && !text.contains("secret"), "{text}");
}
