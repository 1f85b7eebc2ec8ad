//! Judgments of the machine: clock, disk, files, key, resolver.

use super::{CheckId, CheckReport, LookUp, Looked, listed};
use crate::domain::installation::fence::{Fence, FenceState, MEANING};

/// Largest clock error, in milliseconds, that is judged harmless.
const CLOCK_TOLERANCE_MS: u64 = 2_000;

/// Smallest clock error, in milliseconds, that affects signatures, sessions and links of other machines.
const CLOCK_FAULT_MS: u64 = 60_000;

/// Judges the milliseconds by which the clock is ahead of a time server, negative if it is behind; `None` if no server
/// was asked.
pub fn judge_clock(server: &str, ahead: Option<&LookUp<i64>>) -> CheckReport {
    let looked = Looked::at(CheckId::Clock, server, "within two seconds of the time");
    let ahead = match ahead {
        None => {
            return looked
                .skipped("No time server was asked.", "messaging doctor asks one; a server in operation does not");
        }
        Some(Err(reason)) => {
            return looked.found(reason.clone()).skipped(
                format!("The time server did not answer: {reason}."),
                "allow UDP port 123 outwards, or see by yourself that the clock is synchronized (timedatectl)",
            );
        }
        Some(Ok(ahead)) => *ahead,
    };
    let off = ahead.unsigned_abs();
    let direction = if ahead < 0 { "behind" } else { "ahead" };
    let told = format!("{}.{:03} s {direction}", off / 1000, off % 1000);
    let looked = looked.found(told.clone());
    let cure = "synchronize the clock: systemd-timesyncd or chrony (timedatectl set-ntp true)";
    if off > CLOCK_FAULT_MS {
        return looked.fault(format!("The clock is {told}: signatures of mail and webhooks are dated wrongly."), cure);
    }
    if off > CLOCK_TOLERANCE_MS {
        return looked.warning(format!("The clock is {told}."), cure);
    }
    looked.ok("The clock is right.")
}

/// A process that works on a database together with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeFacts<'a> {
    /// Name of the process among those that work on the database.
    pub name: &'a str,
    /// Milliseconds by which the database's clock is ahead of the process's clock.
    pub clock_offset_ms: i64,
    /// True if the clock is so far off that the process takes no work.
    pub is_idle_for_it: bool,
}

/// Judges the difference between a process's clock and that of the database, which all processes follow.
pub fn judge_node_clock(node: NodeFacts<'_>) -> CheckReport {
    let looked = Looked::at(CheckId::Clock, node.name, "within a second of the database's clock");
    let off = node.clock_offset_ms.unsigned_abs();
    let direction = if node.clock_offset_ms < 0 { "ahead of" } else { "behind" };
    let told = format!("{}.{:03} s {direction} the database's", off / 1000, off % 1000);
    let looked = looked.found(told.clone());
    if node.is_idle_for_it {
        return looked.fault(
            format!("The clock is {told}: the process answers requests and sends nothing."),
            "synchronize the clocks of both machines: systemd-timesyncd or chrony (timedatectl set-ntp true)",
        );
    }
    looked.ok("The clock is near enough to the database's.")
}

/// The disk of the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskFacts {
    /// Bytes free; `None` if the system does not report it.
    pub free: Option<u64>,
    /// Bytes to be kept free.
    pub reserve: u64,
}

/// Judges whether more than the reserve is free.
pub fn judge_disk(path: &str, facts: DiskFacts) -> CheckReport {
    let looked = Looked::at(CheckId::Disk, path, "more free than the reserve (--disk-reserve)");
    let Some(free) = facts.free else {
        return looked.skipped("The system does not say how much is free.", "look yourself (df)");
    };
    let told = format!("{} MiB free, {} MiB reserve", free >> 20, facts.reserve >> 20);
    let looked = looked.found(told);
    let cure = "make room on this disk, or move the data directory to a larger one";
    if free < facts.reserve {
        return looked.fault("Less than the reserve is free: requests that add something get 503.", cure);
    }
    if free < facts.reserve.saturating_mul(4) {
        return looked.warning("Less than four times the reserve is free.", cure);
    }
    looked.ok("There is room.")
}

/// A file or directory of the installation, with its permissions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileFact {
    /// The path.
    pub path: String,
    /// Its permission bits.
    pub mode: u32,
    /// Permission bits that it may have at most.
    pub most: u32,
    /// True if it belongs to the user who runs the check.
    pub is_own: bool,
}

/// Judges whether other users can read the data.
pub fn judge_files(directory: &str, facts: &LookUp<Vec<FileFact>>) -> CheckReport {
    let looked = Looked::at(CheckId::Files, directory, "directories 0700 and files 0600, of the user of the server");
    let files = match facts {
        Ok(files) => files,
        Err(reason) => {
            return looked.found(reason.clone()).fault(
                format!("The data directory cannot be looked at: {reason}."),
                "run doctor as the user of the server",
            );
        }
    };
    if files.is_empty() {
        return looked.skipped("There is no data directory yet.", "the server makes it at its first start; see --data");
    }
    let open: Vec<_> = files.iter().filter(|file| file.mode & !file.most & 0o777 != 0).collect();
    if !open.is_empty() {
        let commands = open.iter().map(|file| format!("chmod {:o} {}", file.most, file.path));
        return looked
            .found(listed(open.iter().map(|file| format!("{:04o} {}", file.mode & 0o7777, file.path))))
            .fault("Others on this machine can read or change the data.", commands.collect::<Vec<_>>().join(" && "));
    }
    let foreign: Vec<_> = files.iter().filter(|file| !file.is_own).map(|file| file.path.as_str()).collect();
    if !foreign.is_empty() {
        return looked.found(listed(&foreign)).warning(
            "Files belong to another user than the one who runs this check.",
            "run doctor, and every command on the data directory, as the user of the server; or chown the files to it",
        );
    }
    looked.found(format!("{} looked at", files.len())).ok("Nobody else can read the data.")
}

/// State of the secret key of the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretKeyFact {
    /// The key opens the secrets of the database.
    Fits,
    /// There is neither a database nor a key.
    NotYet,
    /// The key is another one.
    Wrong,
    /// The key is missing, cannot be read, or is no key; with the reason.
    Unusable(String),
    /// The database could not be opened, with the reason.
    Unknown(String),
}

/// Judges whether the secret key is that of the database.
pub fn judge_secret_key(path: &str, fact: &SecretKeyFact) -> CheckReport {
    let looked = Looked::at(CheckId::SecretKey, path, "the key that the database was made with");
    let cure =
        "restore the file that was made with the database from the backup, or name where it is with --secret-key-file";
    match fact {
        SecretKeyFact::Fits => looked.found("fits").ok("The key opens the secrets of the database."),
        SecretKeyFact::NotYet => {
            looked.skipped("There is no database yet.", "the server makes both at its first start; see --data")
        }
        SecretKeyFact::Wrong => looked
            .found("another key")
            .fault("The key is that of another database: the server does not start with it.", cure),
        SecretKeyFact::Unusable(reason) => {
            looked.found(reason.clone()).fault(format!("There is no usable key: {reason}."), cure)
        }
        SecretKeyFact::Unknown(reason) => looked
            .found(reason.clone())
            .fault(format!("The database cannot be opened: {reason}."), "see why, and look at the disk and the files"),
    }
}

/// Judges whether the DNS resolver `server` answered a query.
pub fn judge_resolver(server: &str, answer: &LookUp<()>) -> CheckReport {
    let looked = Looked::at(CheckId::Resolver, server, "an answer");
    match answer {
        Ok(()) => looked.found("answers").ok("The resolver answers."),
        Err(reason) => looked.found(reason.clone()).fault(
            format!("The resolver does not answer: {reason}. Without it no mail leaves."),
            "check the network and /etc/resolv.conf, or name another resolver with --dns IP:PORT",
        ),
    }
}

/// Judges whether messages leave, or wait because the database is a copy.
pub fn judge_fence(database: &str, fence: Option<Fence>) -> CheckReport {
    let looked =
        Looked::at(CheckId::Fence, database, "a database that is no copy, or one of which `admin resume` was told");
    let Some(fence) = fence else { return looked.found("not fenced").ok("Messages leave.") };
    let looked = looked.found(format!("fenced since {}", fence.since));
    match fence.state {
        FenceState::Held => looked.fault(format!("Messages are accepted, and {MEANING}."), fence.state.cure()),
        FenceState::Cancelling => looked.warning("What waited on a copy is being cancelled.", fence.state.cure()),
    }
}
