//! The end of content: no commands pass as content, and no content as commands.

use super::Running;

/// Text that an attacker wants to be read as commands.
const HIDDEN: &str = "MAIL FROM:<>\r\nRCPT TO:<two@b.test>\r\nDATA\r\nSubject: hidden\r\n\r\nx\r\n.\r\n";

#[tokio::test]
async fn no_other_end_of_content_is_believed() {
    for end in [
        "\n.\n",
        "\n.\r\n",
        "\r\n.\n",
        "\r.\r",
        "\r\n.\r",
        "\r.\r\n",
        "\r\n\0.\r\n\n",
        "\r\r\n.\r\r\n",
        "\r\n.\r\r\n",
        "\n.\r",
        "\n\n.\n\n",
        "\r\n\r.\r\n",
    ] {
        let server = Running::start();
        let mut client = server.at_data().await;
        client.send(format!("Subject: x\r\n\r\nbody{end}{HIDDEN}").as_bytes()).await;
        let replies = client.rest().await;
        assert!(replies.starts_with("550 5.6.0") && replies.lines().count() == 1, "{end:?}: {replies}");
        assert_eq!(server.notes.count(), 0, "{end:?}");
    }
}

#[tokio::test]
async fn a_dot_in_a_line_is_content() {
    let server = Running::start();
    let mut client = server.at_data().await;
    client.send(b"Subject: x\r\n\r\n..\r\n. \r\na.\r\n.b\r\n\r\n.\r\nNOOP\r\n").await;
    assert_eq!(client.replies(2).await, "250 250");
    assert_eq!(server.notes.count(), 1);
}

#[tokio::test]
async fn lines_that_end_otherwise_end_the_session() {
    for line in ["NOOP\nMAIL FROM:<>\r\n", "NOOP\rRSET\r\n", "NOOP\r\r\n", "\n", "NOOP\r\nNOOP\nNOOP\r\n"] {
        let server = Running::start();
        let mut client = server.known().await;
        client.send(line.as_bytes()).await;
        let replies = client.rest().await;
        assert!(replies.ends_with("500 5.5.2 lines end with CR and LF\r\n"), "{line:?}: {replies}");
        assert!(!replies.contains("250 2.1.0"), "{line:?}: {replies}");
    }
}
