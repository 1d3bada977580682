//! Compiles the program that stands between host and server and hands it to the crate as bytes: on Linux the
//! supervisor, static and without a C library; on macOS the helper.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=supervisor");
    println!("cargo::rerun-if-changed=build.rs");
    let target = env::var("TARGET").expect("cargo sets TARGET");
    println!("cargo::rustc-env=STOCKADE_TARGET={target}");
    match env::var("CARGO_CFG_TARGET_OS").as_deref() {
        Ok("linux") => build_supervisor(&target),
        Ok("macos") => build_helper(&target),
        _ => {}
    }
}

/// Compiles the helper and writes `helper.rs`, a function that gives its bytes.
fn build_helper(target: &str) {
    println!("cargo::rerun-if-changed=helper-macos");
    println!("cargo::rerun-if-env-changed=MACOSX_DEPLOYMENT_TARGET");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let program = out.join("helper");
    let rustc = env::var_os("RUSTC").expect("cargo sets RUSTC");
    let compile = |how: &[&str]| {
        let mut command = Command::new(&rustc);
        command
            .args(["helper-macos/main.rs", "--edition=2024", "--crate-type=bin"])
            .args(["--crate-name=stockade_helper", "--target", target])
            .args([
                "-Cpanic=abort",
                "-Copt-level=s",
                "-Clto=fat",
                "-Ccodegen-units=1",
            ])
            // Not -Cstrip: changing the file after the linker has signed it would make it useless.
            .args([
                "-Cdebuginfo=0",
                "-Coverflow-checks=off",
                "-Clink-arg=-Wl,-x",
            ])
            .args(how)
            .env_remove("RUSTFLAGS")
            .env_remove("CARGO_ENCODED_RUSTFLAGS");
        if let Some(linker) = env::var_os("RUSTC_LINKER") {
            command
                .arg("-C")
                .arg(format!("linker={}", linker.display()));
        }
        command.output().expect("rustc can be started")
    };
    let output = compile(&["-o", &program.to_string_lossy()]);
    let source = if output.status.success() {
        format!(
            "pub(super) fn program() -> &'static [u8] {{ include_bytes!({:?}) }}",
            program.display().to_string()
        )
    } else {
        // Without a linker for macOS, everything can be checked but nothing built: the constant below fails as soon as
        // code is made of it, which `cargo check` never does.
        let check = compile(&[
            "--emit=metadata",
            "-o",
            &out.join("helper.rmeta").to_string_lossy(),
        ]);
        let failure = String::from_utf8_lossy(&output.stderr).into_owned();
        let on_macos = env::var("HOST").is_ok_and(|host| host.contains("apple-darwin"));
        assert!(
            !on_macos && check.status.success(),
            "the helper could not be compiled for {target}:\n{failure}"
        );
        println!("cargo::warning=no linker for {target}: only checks are possible");
        let failure = failure
            .lines()
            .find(|line| line.starts_with("error"))
            .unwrap_or(&failure);
        let message =
            format!("the helper could not be linked for {target}, which a build needs: {failure}");
        format!(
            "struct Missing<T>(T);\n\
             impl<T> Missing<T> {{ const PROGRAM: &'static [u8] = panic!(\"{{}}\", {message:?}); }}\n\
             pub(super) fn program() -> &'static [u8] {{ Missing::<u8>::PROGRAM }}"
        )
    };
    std::fs::write(out.join("helper.rs"), source).expect("OUT_DIR can be written to");
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
