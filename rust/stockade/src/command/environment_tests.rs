use proptest::prelude::*;

use super::*;

fn compose(
    parent: &[(&str, &str)],
    inherit: &Inherit,
    given: &[(&str, &str)],
) -> Vec<(String, String)> {
    let owned = |pairs: &[(&str, &str)]| -> Vec<(OsString, OsString)> {
        pairs
            .iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect()
    };
    let environment = Environment::compose(owned(parent), inherit, &owned(given));
    let text = |text: &OsStr| text.to_str().unwrap().to_owned();
    environment
        .iter()
        .map(|(name, value)| (text(name), text(value)))
        .collect()
}

fn names(parent: &[&str], extra: &[&str]) -> Vec<String> {
    let parent: Vec<_> = parent.iter().map(|name| (*name, "x")).collect();
    let inherit = Inherit::Safe(extra.iter().map(Into::into).collect());
    let environment = compose(&parent, &inherit, &[("PYTHONUTF8", "0")]);
    environment
        .into_iter()
        .map(|(name, _)| name)
        .filter(|name| name != "PYTHONUTF8")
        .collect()
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

const SECRET_HOST: [(&str, &str); 4] = [
    ("PATH", "/bin"),
    ("AWS_SECRET", "s"),
    ("LD_PRELOAD", "x.so"),
    ("HOME", "/h"),
];

#[test]
fn the_safe_list_lets_nothing_else_through() {
    let expected = pairs(&[("HOME", "/h"), ("PATH", "/bin"), ("PYTHONUTF8", "1")]);
    assert_eq!(compose(&SECRET_HOST, &Inherit::Safe(vec![]), &[]), expected);
    assert_eq!(
        names(
            &[
                "HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "home", "HOMES", "LANG"
            ],
            &[]
        )
        .len(),
        6
    );
}

#[test]
fn all_is_everything_and_none_is_nothing() {
    assert_eq!(compose(&SECRET_HOST, &Inherit::All, &[]).len(), 5);
    assert_eq!(
        compose(&SECRET_HOST, &Inherit::None, &[]),
        pairs(&[("PYTHONUTF8", "1")])
    );
}

#[test]
fn what_is_given_comes_on_top_in_every_mode_and_the_last_one_counts() {
    for inherit in [Inherit::Safe(vec![]), Inherit::All, Inherit::None] {
        let environment = compose(
            &[("PATH", "/bin")],
            &inherit,
            &[("PATH", "/a"), ("X", "1"), ("PATH", "/b")],
        );
        assert_eq!(
            environment,
            pairs(&[("PATH", "/b"), ("PYTHONUTF8", "1"), ("X", "1")])
        );
    }
    assert_eq!(
        compose(&[("A", "1"), ("A", "2")], &Inherit::All, &[])[0].1,
        "2"
    );
}

#[test]
fn python_speaks_utf8_unless_the_user_has_a_say() {
    let host = [("PYTHONUTF8", "0")];
    assert_eq!(
        compose(&host, &Inherit::Safe(vec![]), &[]),
        pairs(&[("PYTHONUTF8", "1")])
    );
    assert_eq!(
        compose(&host, &Inherit::Safe(vec!["PYTHON*".into()]), &[]),
        pairs(&host)
    );
    assert_eq!(compose(&host, &Inherit::All, &[]), pairs(&host));
    assert_eq!(
        compose(&[], &Inherit::None, &[("PYTHONUTF8", "")]),
        pairs(&[("PYTHONUTF8", "")])
    );
}

#[test]
fn exported_shell_functions_are_not_passed_on() {
    let host = [
        ("BASH_FUNC_x%%", "() { :; }"),
        ("BASH_FUNC_y%%", ""),
        ("HOME", "() { evil; }"),
        ("A", " ()"),
        ("USER", "u"),
    ];
    let expected = pairs(&[("A", " ()"), ("PYTHONUTF8", "1"), ("USER", "u")]);
    assert_eq!(compose(&host, &Inherit::All, &[]), expected);
    assert_eq!(
        compose(&host, &Inherit::Safe(vec!["*".into()]), &[]),
        expected
    );
    // What the user gives is the user's.
    assert_eq!(
        compose(&[], &Inherit::None, &[("F", "() { :; }")])[0].0,
        "F"
    );
}

#[test]
fn entries_that_no_program_can_be_given_are_left_out() {
    let host = [
        ("", "x"),
        ("=C:", "x"),
        ("A\0", "x"),
        ("B", "x\0"),
        ("C", "x"),
    ];
    assert_eq!(
        compose(&host, &Inherit::All, &[]),
        pairs(&[("C", "x"), ("PYTHONUTF8", "1")])
    );
}

#[test]
fn a_star_stands_for_any_run_of_characters() {
    let host = [
        "XDG_DATA_HOME",
        "XDG_",
        "XDG",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "https_proxy",
        "NO_PROXY_X",
    ];
    assert_eq!(names(&host, &["XDG_*"]), ["XDG_", "XDG_DATA_HOME"]);
    assert_eq!(names(&host, &["*_PROXY"]), ["HTTPS_PROXY", "HTTP_PROXY"]);
    assert_eq!(names(&host, &["HTTP*PROXY"]), ["HTTPS_PROXY", "HTTP_PROXY"]);
    assert_eq!(names(&host, &["X*G*E"]), ["XDG_DATA_HOME"]);
    assert_eq!(names(&host, &["HTTP"]), Vec::<String>::new());
    assert_eq!(names(&host, &["*"]).len(), host.len());
    assert_eq!(names(&["AB"], &["AB*B"]), Vec::<String>::new());
}

#[test]
fn a_debug_print_shows_no_variable() {
    let environment = Environment::compose([("TOKEN".into(), "secret".into())], &Inherit::All, &[]);
    assert_eq!(format!("{environment:?}"), "Environment(2 variables)");
    assert_eq!(
        environment.get(OsStr::new("TOKEN")),
        Some(OsStr::new("secret"))
    );
    assert_eq!(
        (
            environment.get(OsStr::new("token")),
            environment.len(),
            environment.is_empty()
        ),
        (None, 2, false)
    );
}

/// The same by trying every run of characters for a star.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    match pattern.split_first() {
        None => name.is_empty(),
        Some((b'*', pattern)) => (0..=name.len()).any(|skipped| fits(pattern, &name[skipped..])),
        Some((byte, pattern)) => name.first() == Some(byte) && fits(pattern, &name[1..]),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn patterns_are_their_model(pattern in "[AB*]{0,8}", name in "[AB]{0,10}") {
        prop_assert_eq!(matches(pattern.as_bytes(), name.as_bytes()), fits(pattern.as_bytes(), name.as_bytes()));
    }
}
