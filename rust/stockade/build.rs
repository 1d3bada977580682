//! Compiles the supervisor, a static program without a C library, for the target and hands it to the crate as bytes.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=supervisor");
    println!("cargo::rerun-if-changed=build.rs");
    let target = env::var("TARGET").expect("cargo sets TARGET");
    println!("cargo::rustc-env=STOCKADE_TARGET={target}");
    if env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        build_supervisor(&target);
    }
}

fn build_supervisor(target: &str) {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("supervisor");
    let rustc = env::var_os("RUSTC").expect("cargo sets RUSTC");
    let compile = |linker: &[String]| {
        Command::new(&rustc)
            .args([
                "supervisor/main.rs",
                "--edition=2024",
                "--crate-type=bin",
                "--crate-name=stockade_supervisor",
            ])
            .args([
                "--target",
                target,
                "-Cpanic=abort",
                "-Copt-level=s",
                "-Clto=fat",
                "-Ccodegen-units=1",
            ])
            .args([
                "-Coverflow-checks=off",
                "-Cdebug-assertions=off",
                "-Cstrip=symbols",
                "-Crelocation-model=static",
            ])
            .args(linker)
            .arg("-o")
            .arg(&out)
            // The host's flags (sanitizers, CPU features, another linker) aren't meant for this program.
            .env_remove("RUSTFLAGS")
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .output()
            .expect("rustc can be started")
    };
    // The linker that comes with rustup works for every target; without it, the C compiler driver links for this one.
    let own = rust_lld(&rustc).map(|path| {
        let flag = |text: &str| text.to_owned();
        vec![
            format!("-Clinker={}", path.display()),
            flag("-Clinker-flavor=ld.lld"),
            flag("-Clink-args=-nostdlib -static -z noexecstack -z norelro --build-id=none"),
        ]
    });
    let driver = vec![
        "-Clink-args=-nostdlib -nostartfiles -static -no-pie -Wl,-z,noexecstack,-z,norelro,--build-id=none".to_owned(),
    ];
    let mut failure = String::new();
    for linker in own.into_iter().chain([driver]) {
        let output = compile(&linker);
        if output.status.success() {
            return;
        }
        failure = String::from_utf8_lossy(&output.stderr).into_owned();
    }
    panic!("the supervisor could not be compiled for {target}:\n{failure}");
}

fn rust_lld(rustc: &std::ffi::OsStr) -> Option<PathBuf> {
    let output = Command::new(rustc)
        .args(["--print", "sysroot"])
        .output()
        .ok()?;
    let host = env::var("HOST").ok()?;
    let path = Path::new(std::str::from_utf8(&output.stdout).ok()?.trim())
        .join("lib/rustlib")
        .join(host)
        .join("bin/rust-lld");
    path.is_file().then_some(path)
}
