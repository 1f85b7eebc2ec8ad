use super::*;

const STRICT: Guard = Guard { allow_private: false };
const OPEN: Guard = Guard { allow_private: true };

#[track_caller]
fn check(text: &str, expected: Result<(), UrlFault>) {
    assert_eq!(STRICT.check(text).map(|_| ()), expected, "{text}");
}

#[test]
fn public_addresses_pass() {
    for text in [
        "https://acme.com/hook",
        "https://acme.com:8443/hook?a=b#c",
        "https://ACME.com./",
        "https://93.184.216.34/",
        "https://[2606:2800:220:1::1]/",
        "https://bücher.example/",
        "https://acme.com/a@b",
        "https://11.0.0.1/",
        "https://100.63.0.1/",
        "https://100.128.0.1/",
        "https://172.15.0.1/",
        "https://172.32.0.1/",
        "https://198.17.0.1/",
        "https://198.20.0.1/",
        "https://223.255.255.255/",
        "https://[2001:200::1]/",
        "https://[3fff:1000::1]/",
    ] {
        check(text, Ok(()));
    }
}

#[test]
fn names_and_ports_that_nobody_has_are_refused() {
    let longest = "a".repeat(63);
    check(&format!("https://{longest}.example/"), Ok(()));
    check("https://acme.com:1/", Ok(()));
    let too_long_name = vec!["b".repeat(60); 5].join(".");
    for text in [
        format!("https://{longest}a.example/"),
        format!("https://{too_long_name}.example/"),
        "https://acme..com/".to_owned(),
        "https://acme.com../".to_owned(),
        "https://acme.com:0/".to_owned(),
        "https://93.184.216.34:0/".to_owned(),
    ] {
        let judged = STRICT.check(&text).map(|_| ());
        assert!(matches!(judged, Err(UrlFault::NotAllowed)), "{text} {judged:?}");
        assert!(OPEN.check(&text).is_err(), "{text}");
    }
    for text in ["https://", "https://acme.com:99999/", "https://acme.com:x/", "acme.com/hook", "https://[::1/"] {
        check(text, Err(UrlFault::Malformed));
    }
}

#[test]
fn every_spelling_of_a_private_address_is_refused() {
    for host in [
        // Loopback: plain, short, decimal, octal, hexadecimal, mixed, with a final dot, percent-encoded, wide.
        "127.0.0.1",
        "127.1",
        "127.0.1",
        "2130706433",
        "017700000001",
        "0177.0.0.1",
        "0177.0.0.01",
        "0x7f000001",
        "0x7F.1",
        "0x7f.0x0.0x0.0x1",
        "127.0.0.1.",
        "2130706433.",
        "%31%32%37.0.0.1",
        "１２７.0.0.1",
        "127。0。0。1",
        "①②⑦.0.0.1",
        "localhost",
        "LocalHost",
        "localhost.",
        "a.localhost",
        "a.b.localhost.",
        // Everything else that IPv4 has.
        "0.0.0.0",
        "0",
        "0.1.2.3",
        "10.0.0.1",
        "10.255.255.255",
        "100.64.0.1",
        "100.127.255.255",
        "169.254.169.254",
        "2852039166",
        "0xa9fea9fe",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.1",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.0.1",
        "192.168.1",
        "198.18.0.1",
        "198.19.255.255",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
        // IPv6.
        "[::]",
        "[::1]",
        "[0:0:0:0:0:0:0:1]",
        "[0000::0001]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[0:0:0:0:0:ffff:10.0.0.1]",
        "[::ffff:93.184.216.34]",
        "[::ffff:0:127.0.0.1]",
        "[::127.0.0.1]",
        "[::a00:1]",
        "[64:ff9b::7f00:1]",
        "[64:ff9b::10.0.0.1]",
        "[64:ff9b:1::a00:1]",
        "[2002:7f00:1::]",
        "[2002:a00:1::1]",
        "[2002:5db8:d822::1]",
        "[2001::1]",
        "[2001:0:7f00:1::]",
        "[2001:2::1]",
        "[2001:10::1]",
        "[2001:db8::1]",
        "[3fff::1]",
        "[100::1]",
        "[5f00::1]",
        "[fc00::1]",
        "[fd12:3456:789a::1]",
        "[fe80::1]",
        "[fec0::1]",
        "[ff02::1]",
    ] {
        check(&format!("https://{host}/hook"), Err(UrlFault::NotAllowed));
        check(&format!("https://{host}:8443/hook"), Err(UrlFault::NotAllowed));
        assert!(OPEN.check(&format!("http://{host}/hook")).is_ok(), "{host}");
    }
    check("HTTPS://127.1", Err(UrlFault::NotAllowed));
}

#[test]
fn schemes_and_user_info_are_refused() {
    for text in [
        "http://acme.com/",
        "ftp://acme.com/",
        "file:///etc/passwd",
        "gopher://acme.com/",
        "data:text/plain,x",
        "javascript:alert(1)",
        "mailto:ann@example.com",
        "https://user@acme.com/",
        "https://user:password@acme.com/",
        "https://:password@acme.com/",
        "https://@acme.com/",
        "https://:@acme.com/",
        "https://acme.com@127.0.0.1/",
    ] {
        check(text, Err(UrlFault::NotAllowed));
    }
    for text in ["https://user@acme.com/", "http://@127.0.0.1/", "ftp://acme.com/"] {
        assert_eq!(OPEN.check(text).map(|_| ()), Err(UrlFault::NotAllowed), "{text}");
    }
    assert!(OPEN.check("http://127.0.0.1:8080/hook").is_ok());
}

#[test]
fn what_is_no_url_is_malformed() {
    for text in [
        "",
        "acme.com",
        "/hook",
        "//acme.com/hook",
        "https://",
        "https:///",
        "https://a b/",
        " https://acme.com/",
        "https://acme.com/\n",
        "https://ac\tme.com/",
        "https://acme.com:99999/",
        "https://256.256.256.256/",
        "https://1.2.3.4.5/",
        "https://[::1/",
        "https://[fe80::1%25eth0]/",
        "https://a%00b/",
        // Backslashes and missing slashes are slashes to a browser.
        "https:acme.com",
        "https:/acme.com/hook",
        "https:///acme.com/hook",
        "https://acme.com\\hook",
        "https:\\\\acme.com",
        "http:127.0.0.1",
        "https:\\\\127.0.0.1\\",
    ] {
        check(text, Err(UrlFault::Malformed));
    }
}
