use proptest::prelude::*;

use super::*;

/// A file header, one other program header, one that names the loader, and the name.
fn binary(wide: bool, little: bool, loader: &[u8]) -> Vec<u8> {
    let number = |value: u64, size: usize| -> Vec<u8> {
        let bytes = value.to_le_bytes();
        let mut bytes = bytes[..size].to_vec();
        if !little {
            bytes.reverse();
        }
        bytes
    };
    let word = if wide { 8 } else { 4 };
    let (header, entry) = if wide { (64, 56) } else { (52, 32) };
    let mut file = vec![0; header + 2 * entry];
    let mut put = |at: usize, value: u64, size: usize| {
        file[at..at + size].copy_from_slice(&number(value, size));
    };
    put(18, 62, 2);
    put(if wide { 32 } else { 28 }, header as u64, word);
    put(if wide { 54 } else { 42 }, entry as u64, 2);
    put(if wide { 56 } else { 44 }, 2, 2);
    put(header, 6, 4);
    let interp = header + entry;
    put(interp, 3, 4);
    put(
        interp + if wide { 8 } else { 4 },
        (header + 2 * entry) as u64,
        word,
    );
    put(
        interp + if wide { 32 } else { 16 },
        loader.len() as u64,
        word,
    );
    file[..4].copy_from_slice(b"\x7FELF");
    file[4] = if wide { 2 } else { 1 };
    file[5] = if little { 1 } else { 2 };
    file.extend_from_slice(loader);
    file
}

#[test]
fn the_loader_is_found_in_every_class_and_order() {
    for wide in [false, true] {
        for little in [false, true] {
            let file = binary(wide, little, b"/lib/ld.so\0");
            assert_eq!(
                loader_on(&[62], &file),
                Some(&b"/lib/ld.so"[..]),
                "wide {wide}, little {little}"
            );
            assert_eq!(loader_on(&[183], &file), None);
            for length in 0..file.len() {
                assert_eq!(loader_on(&[62], &file[..length]), None, "cut at {length}");
            }
        }
    }
}

#[test]
fn a_static_binary_has_none() {
    let mut file = binary(true, true, b"/lib/ld.so\0");
    file[64 + 56] = 1;
    assert_eq!(loader_on(&[62], &file), None);
    assert_eq!(loader_on(&[62], &binary(true, true, b"\0")), None);
}

#[cfg(target_os = "linux")]
#[test]
fn the_loader_of_this_test_exists() {
    let file = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    if let Some(loader) = loader(&file[..4096]) {
        let path = std::str::from_utf8(loader).unwrap();
        assert!(std::path::Path::new(path).exists(), "{path}");
    }
}

proptest! {
    #[test]
    fn no_file_is_too_odd(changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8), wide in any::<bool>()) {
        let mut file = binary(wide, true, b"/lib/ld.so\0");
        for (at, byte) in changes {
            let at = at.index(file.len());
            file[at] = byte;
        }
        if let Some(found) = loader_on(&[62], &file) {
            prop_assert!(!found.is_empty() && !found.contains(&0));
        }
    }
}
