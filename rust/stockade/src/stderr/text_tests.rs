use proptest::prelude::*;

use super::*;

#[test]
fn plain_text_stays_as_it_is() {
    for text in [
        "",
        "Server ready\ton stdio",
        "naïve 日本語 – 😀",
        "می‌خواهم",
        "👩\u{200D}💻",
    ] {
        assert_eq!(sanitise(text.as_bytes()), text);
    }
}

#[test]
fn escape_sequences_go_whole() {
    for (bytes, text) in [
        (&b"\x1B[31mred\x1B[0m"[..], "red"),
        (b"\x1B[38;5;196;1mred\x1B[m!", "red!"),
        (b"\x1B[2J\x1B[1;1Hhome", "home"),
        (b"\x1B[?25lspinner\x1B[?25h", "spinner"),
        (b"\x1B]0;title\x07text", "text"),
        (
            b"\x1B]8;;https://example.org\x1B\\link\x1B]8;;\x1B\\",
            "link",
        ),
        (b"\x1BP1$r0m\x1B\\after", "after"),
        (b"\x1B(Bascii\x1B7\x1BM", "ascii"),
        ("\u{9B}31mred\u{9D}0;title\u{9C}!".as_bytes(), "red!"),
    ] {
        assert_eq!(sanitise(bytes), text, "{bytes:?}");
    }
}

#[test]
fn a_broken_sequence_hides_nothing_behind_it() {
    for (bytes, text) in [
        (&b"\x1B]0;the rest is shown"[..], "0;the rest is shown"),
        (b"\x1BPshown", "shown"),
        (b"\x1B[31\x1B[0mshown", "shown"),
        ("\x1B[3é".as_bytes(), "é"),
        (b"end\x1B", "end"),
        (b"end\x1B[", "end"),
        (b"\x1B\x1B[1mshown", "shown"),
    ] {
        assert_eq!(sanitise(bytes), text, "{bytes:?}");
    }
}

#[test]
fn what_breaks_a_line_becomes_a_space() {
    let text = "10%\r20%\u{2028}a\u{2029}b\u{85}c\x0Bd\x0Ce\nf";
    assert_eq!(sanitise(text.as_bytes()), "10% 20% a b c d e f");
}

#[test]
fn controls_directions_and_hidden_characters_go() {
    let hidden = "a\0b\x08c\x7Fd\u{80}e\u{202E}f\u{2066}g\u{200F}h\u{61C}i\u{FEFF}j\u{200B}k\u{E0041}l\u{2060}m";
    assert_eq!(sanitise(hidden.as_bytes()), "abcdefghijklm");
}

#[test]
fn bytes_that_are_not_utf8_are_marked() {
    assert_eq!(sanitise(b"caf\xE9 \xF0\x9F\x98"), "caf\u{FFFD} \u{FFFD}");
    // A C1 control as a single byte isn't UTF-8 either.
    assert_eq!(sanitise(b"\x9B31m"), "\u{FFFD}31m");
}

#[test]
fn the_tail_has_the_last_lines_that_fit() {
    let lines = ["one", "two", "three"];
    assert_eq!(tail(&lines, 2, 100), "two\nthree");
    assert_eq!(tail(&lines, 9, 9), "two\nthree");
    assert_eq!(tail(&lines, 9, 8), "three");
    assert_eq!(tail(&lines, 0, 100), "");
    assert_eq!(tail(&["a", "", "b", ""], 9, 100), "a\n\nb\n");
    assert_eq!(tail::<&str>(&[], 9, 100), "");
    assert_eq!(join(&lines), "one\ntwo\nthree");
}

#[test]
fn of_a_very_long_last_line_the_end_is_shown() {
    assert_eq!(tail(&["x", "0123456789"], 9, 7), "…6789");
    assert_eq!(tail(&["éééé"], 9, 6), "…é");
    assert_eq!(tail(&["abc"], 9, 2), "");
}

proptest! {
    #[test]
    fn nothing_unsafe_is_left(bytes in proptest::collection::vec(prop_oneof![any::<u8>(), Just(0x1B), Just(b'['), Just(b']')], 0..200)) {
        check(&sanitise(&bytes))?;
    }

    #[test]
    fn nothing_unsafe_is_left_of_any_text(text in any::<String>(), other in "[\\x1B\\[\\]\\u{80}-\\u{9F}\\u{2000}-\\u{2070}a-c;\\x07]{0,40}") {
        check(&sanitise(text.as_bytes()))?;
        check(&sanitise(other.as_bytes()))?;
    }

    #[test]
    fn the_tail_keeps_its_bounds(lines in proptest::collection::vec("\\PC{0,30}", 0..10), most in 0..12_usize, bytes in 0..200_usize) {
        let shown = tail(&lines, most, bytes);
        prop_assert!(shown.len() <= bytes);
        prop_assert!(shown.is_empty() || shown.split('\n').count() <= most);
    }
}

fn check(text: &str) -> Result<(), TestCaseError> {
    for char in text.chars() {
        prop_assert!(char == '\t' || !char.is_control(), "{char:?}");
        let reorders = matches!(char, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{200E}' | '\u{200F}' | '\u{61C}');
        let breaks = matches!(char, '\u{2028}' | '\u{2029}' | '\u{FEFF}');
        prop_assert!(!reorders && !breaks, "{char:?}");
    }
    Ok(())
}

#[test]
fn introducers_without_an_end_cost_no_more_than_their_number() {
    // Quadratic work over these would take minutes.
    let line = b"\x1B]x".repeat(500_000);
    assert_eq!(sanitise(&line), "x".repeat(500_000));
}

#[test]
fn lines_of_nothing_visible_use_up_the_room_of_a_tail() {
    let lines = vec![b"\x1B[0m".repeat(10_000); 50];
    assert_eq!(tail(&lines, 50, 1000).trim(), "");
}
