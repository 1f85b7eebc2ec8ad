//! Gives memory back to the system when it is free again.
//!
//! A body of 20 MiB and what is decoded from it are a few large allocations. The GNU C library takes
//! such from the system one by one and gives them back, until it has seen some: then it keeps them in
//! its heaps, where they leave holes, and a burst of large messages costs hundreds of MiB for ever.
//! Fixed thresholds stop it from learning that. They can be set from outside only, so the program
//! starts itself once more with them; that takes a millisecond, before there is anything to lose.

use std::ffi::OsString;
use std::io;

const VARIABLE: &str = "GLIBC_TUNABLES";

/// Allocations from 1 MiB on are the system's; a heap with 1 MiB free at its end shrinks.
const TUNABLES: &str = "glibc.malloc.mmap_threshold=1048576:glibc.malloc.trim_threshold=1048576";

/// The tunable that decides whether somebody has thought of this already.
const DECISIVE: &str = "glibc.malloc.mmap_threshold";

/// Starts the program again with fixed thresholds, if it runs without. To be called first thing in
/// `main`: everything before it happens twice.
///
/// Whoever sets the variable `GLIBC_TUNABLES` with a `glibc.malloc.mmap_threshold` has the last word.
/// Where the program cannot be started again it goes on as it is.
pub fn keep_thresholds_fixed() {
    if let Some(value) = wanted(std::env::var_os(VARIABLE)) {
        // Only returns when it fails; then memory is held for longer, and all else is the same.
        let _failed = start_again(&value);
    }
}

/// The value that the variable should have; `None` when it is good as it is.
fn wanted(present: Option<OsString>) -> Option<OsString> {
    match present {
        None => Some(TUNABLES.into()),
        Some(value) if value.is_empty() => Some(TUNABLES.into()),
        Some(value) if value.to_string_lossy().contains(DECISIVE) => None,
        Some(mut value) => {
            value.push(":");
            value.push(TUNABLES);
            Some(value)
        }
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn start_again(value: &OsString) -> io::Result<()> {
    use std::os::unix::process::CommandExt as _;

    let mut arguments = std::env::args_os();
    let name = arguments.next().unwrap_or_default();
    let program = std::env::current_exe()?;
    Err(std::process::Command::new(program).arg0(name).args(arguments).env(VARIABLE, value).exec())
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn start_again(_value: &OsString) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_somebody_decided_is_kept() {
        let wanted = |present: &str| wanted(Some(present.into())).map(|value| value.into_string().unwrap());
        assert_eq!(wanted(""), Some(TUNABLES.to_owned()));
        assert_eq!(wanted("glibc.malloc.arena_max=1"), Some(format!("glibc.malloc.arena_max=1:{TUNABLES}")));
        assert_eq!(wanted("glibc.malloc.mmap_threshold=4096"), None);
        // Started again, the program does not do it once more.
        assert_eq!(wanted(TUNABLES), None);
    }
}
