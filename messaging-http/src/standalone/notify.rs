//! What the service manager is told of the server (`sd_notify(3)`): a datagram to the socket that `NOTIFY_SOCKET` names.
//! Without one nobody is told.

use std::ffi::OsStr;
use std::io;
use std::os::unix::net::UnixDatagram;

use rustix::time::{ClockId, clock_gettime};

/// State of the server that the service manager is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Requests are answered, with settings that were read completely.
    Ready,
    /// Settings are being read again.
    Reloading,
    /// No more requests are taken; those under way are finished.
    Stopping,
}

/// Tells the service manager, if there is one. That it does not hear is only noted.
pub(super) fn tell(state: State) {
    let Some(socket) = std::env::var_os("NOTIFY_SOCKET").filter(|socket| !socket.is_empty()) else { return };
    if let Err(error) = send(&socket, &text(state)) {
        tracing::warn!(%error, "the service manager cannot be told of the server's state");
    }
}

fn text(state: State) -> String {
    match state {
        State::Ready => "READY=1".to_owned(),
        State::Stopping => "STOPPING=1".to_owned(),
        State::Reloading => {
            let now = clock_gettime(ClockId::Monotonic);
            format!("RELOADING=1\nMONOTONIC_USEC={}", now.tv_sec * 1_000_000 + now.tv_nsec / 1_000)
        }
    }
}

fn send(socket: &OsStr, text: &str) -> io::Result<()> {
    let own = UnixDatagram::unbound()?;
    #[cfg(target_os = "linux")]
    {
        use std::os::linux::net::SocketAddrExt as _;
        use std::os::unix::ffi::OsStrExt as _;
        use std::os::unix::net::SocketAddr;
        // A name that is no file begins with @ in the place of a zero.
        if let Some(name) = socket.as_bytes().strip_prefix(b"@") {
            return own.send_to_addr(text.as_bytes(), &SocketAddr::from_abstract_name(name)?).map(drop);
        }
    }
    own.send_to(text.as_bytes(), socket).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_by_its_path_and_one_without_a_file_hear_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        let manager = UnixDatagram::bind(&path).unwrap();
        let mut heard = [0; 100];
        send(path.as_os_str(), &text(State::Ready)).unwrap();
        let length = manager.recv(&mut heard).unwrap();
        assert_eq!(&heard[..length], b"READY=1");
        #[cfg(target_os = "linux")]
        {
            use std::os::linux::net::SocketAddrExt as _;
            use std::os::unix::net::SocketAddr;
            let name = format!("messaging-notify-{}", std::process::id());
            let manager = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
            send(OsStr::new(&format!("@{name}")), &text(State::Reloading)).unwrap();
            let length = manager.recv(&mut heard).unwrap();
            let told = String::from_utf8_lossy(&heard[..length]).into_owned();
            let time = told.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").unwrap();
            assert!(time.parse::<u64>().unwrap() > 0, "{told}");
        }
        assert!(send(directory.path().join("absent").as_os_str(), "READY=1").is_err());
    }
}
