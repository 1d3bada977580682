use proptest::prelude::*;

use super::*;

fn script(head: &[u8]) -> (&str, &str, bool) {
    match form(head) {
        Form::Script {
            interpreter,
            argument,
            carriage_return,
        } => (
            std::str::from_utf8(interpreter).unwrap(),
            std::str::from_utf8(argument).unwrap(),
            carriage_return,
        ),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_first_line_is_read_as_the_kernel_does() {
    assert_eq!(script(b"#!/bin/sh\necho"), ("/bin/sh", "", false));
    assert_eq!(
        script(b"#! \t/usr/bin/env  node --flag \nx"),
        ("/usr/bin/env", "node --flag", false)
    );
    assert_eq!(script(b"#!/bin/sh"), ("/bin/sh", "", false));
    assert_eq!(script(b"#!/bin/sh\0-x\n"), ("/bin/sh", "", false));
    assert_eq!(script(b"#!\n/bin/sh"), ("", "", false));
    assert_eq!(
        script(b"#!/usr/bin/env node\r\n"),
        ("/usr/bin/env", "node\r", true)
    );
    let long = [b"#!/".as_slice(), &[b'x'; 5000]].concat();
    assert_eq!(script(&long).0.len(), LINE - 2);
}

#[test]
fn text_and_binaries_are_told_apart() {
    for (head, expected) in [
        (&b""[..], Form::PlainText(PlainText::Empty)),
        (b"import sys\n", Form::PlainText(PlainText::Other)),
        (b"caf\xE9 \x1B[1m", Form::PlainText(PlainText::Other)),
        (b" #!/bin/sh", Form::PlainText(PlainText::Other)),
        (
            b"\xEF\xBB\xBF#!/bin/sh",
            Form::PlainText(PlainText::BehindMark),
        ),
        (b"MZ plain", Form::Binary),
        (b"\x7FELF", Form::Binary),
        (b"\xCF\xFA\xED\xFE plain", Form::Binary),
        (b"PK\x03\x04", Form::Binary),
    ] {
        assert_eq!(form(head), expected, "{head:?}");
    }
}

#[test]
fn what_env_looks_for_is_told_where_it_can_be() {
    use EnvTarget::{Name, Unknown, Unsplit};
    for (argument, on_linux, split) in [
        (&b"node"[..], Name(b"node"), Name(b"node")),
        (b"node -x", Unsplit(b"node -x"), Name(b"node")),
        (b"-S node -x", Name(b"node"), Name(b"node")),
        (b"-Snode -x", Name(b"node"), Name(b"node")),
        (b"--split-string=A=1 B=2 node", Name(b"node"), Name(b"node")),
        (b"-S -i node", Unknown, Unknown),
        (b"-S \"my node\"", Unknown, Unknown),
        (b"-S ${NODE}", Unknown, Unknown),
        (b"-S", Unknown, Unknown),
        (b"-i", Unknown, Unknown),
        (b"A=1", Unknown, Unknown),
        (b"", Unknown, Unknown),
    ] {
        assert_eq!(env_target(argument, true), on_linux, "{argument:?}");
        assert_eq!(env_target(argument, false), split, "{argument:?}");
    }
    assert!(is_env(b"/usr/bin/env") && is_env(b"env") && !is_env(b"/usr/bin/myenv"));
}

proptest! {
    #[test]
    fn no_head_is_too_odd(mut head in proptest::collection::vec(any::<u8>(), 0..300), shebang in any::<bool>()) {
        if shebang {
            head.splice(0..0, *b"#!");
        }
        if let Form::Script { interpreter, argument, .. } = form(&head) {
            prop_assert!(shebang || head.starts_with(b"#!"));
            prop_assert!(interpreter.len() + argument.len() <= LINE);
            let _ = (env_target(argument, true), env_target(argument, false));
        }
    }
}
