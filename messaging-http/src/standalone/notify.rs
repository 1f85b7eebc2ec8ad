//! Notifications of the service manager (`sd_notify(3)`): datagrams to the socket in `NOTIFY_SOCKET`. Without it none
//! are sent.

use std::ffi::OsStr;
use std::io;
use std::os::unix::net::UnixDatagram;

use rustix::time::{ClockId, clock_gettime};

/// State of the server that is sent to the service manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Requests are answered, and the settings were read completely.
    Ready,
    /// Settings are being read again.
    Reloading,
    /// No more requests are accepted; the running ones are finished.
    Stopping,
}

/// Notifies the service manager, if there is one. A failure is only logged.
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
        // An abstract name begins with @, which stands for a zero byte.
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
