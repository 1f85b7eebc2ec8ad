//! Names of machines.

/// Returns true if a name is allowed in EHLO.
pub(super) fn is_hostname(name: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    name.len() <= 253 && name.split('.').all(is_label)
}

/// The machine's own host name, if it is allowed in EHLO.
pub(super) fn machine_name() -> Option<String> {
    let name = rustix::system::uname().nodename().to_str().ok()?.to_owned();
    is_hostname(&name).then_some(name)
}
