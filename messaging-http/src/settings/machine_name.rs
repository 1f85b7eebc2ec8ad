//! Names of machines.

/// Whether a text can be said as the name of a machine in EHLO.
pub(super) fn is_hostname(name: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    name.len() <= 253 && name.split('.').all(is_label)
}

/// Name that the machine calls itself, if that can be said in EHLO.
pub(super) fn machine_name() -> Option<String> {
    let name = rustix::system::uname().nodename().to_str().ok()?.to_owned();
    is_hostname(&name).then_some(name)
}
