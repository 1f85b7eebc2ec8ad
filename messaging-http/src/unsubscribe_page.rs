//! What recipients of mail see: the page that asks whether to unsubscribe, and what became of it.
//!
//! Plain on purpose: no script, nothing loaded from anywhere, readable in every browser, by screen readers
//! and in the dark. The page asks because mail filters follow links; only sending the form unsubscribes.

use bytes::Bytes;

const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:1.125rem/1.5 system-ui,sans-serif;margin:0 auto;max-width:32rem;padding:15vh 1.25rem 2rem}\
h1{font-size:1.5rem;margin:0 0 .5rem}\
button{background:#1d4ed8;border:0;border-radius:.5rem;color:#fff;cursor:pointer;font:inherit;font-weight:600;\
margin-top:.5rem;padding:.75rem 1.5rem}\
button:hover{background:#1e40af}\
button:focus-visible{outline:3px solid #f59e0b;outline-offset:2px}";

/// Asks whether to unsubscribe. The form goes to the page's own address.
pub(crate) fn question() -> Bytes {
    page(
        "Unsubscribe",
        "<p>Do you want to stop receiving these emails?</p>\
         <form method=\"post\"><button type=\"submit\" name=\"confirm\" value=\"yes\">Unsubscribe</button></form>",
    )
}

/// Says that it is done.
pub(crate) fn done() -> Bytes {
    page("You are unsubscribed", "<p>You will not receive these emails any more. You can close this page.</p>")
}

/// Says that a link is none of ours.
pub(crate) fn unknown() -> Bytes {
    page(
        "This link does not work",
        "<p>It may be incomplete. Please open it again from the email, or copy all of it.</p>",
    )
}

/// Says that nothing happened yet.
pub(crate) fn trouble() -> Bytes {
    page("This did not work", "<p>Please try again in a moment.</p>")
}

fn page(title: &str, content: &str) -> Bytes {
    let page = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"robots\" content=\"noindex, nofollow\"><style>{STYLE}</style></head>\
         <body><main><h1>{title}</h1>{content}</main></body></html>\n"
    );
    page.into()
}
