//! Classes of push services' answers: RFC 8030 gives them statuses, and no codes.
//!
//! Sources: RFC 8030 sections 5 to 7, the errors of Pushpad, Microsoft's documentation of its push service.

use messaging_core::domain::delivery::outcome::{
    Acceptance, AddressFault, Answer, ContentFault, OutcomeClass, ProviderAnswer, Scope,
};

use crate::provider::Reply;

/// Host suffix of Microsoft's push service, which answers 406 when it limits the rate.
const WINDOWS: &str = ".notify.windows.com";

fn class(status: u16, host: &str) -> OutcomeClass {
    match status {
        200..=299 => OutcomeClass::Accepted(Acceptance::Delivered),
        404 | 410 => OutcomeClass::Address(AddressFault::Recipient),
        429 => OutcomeClass::Throttled(Scope::Origin),
        406 if host.ends_with(WINDOWS) => OutcomeClass::Throttled(Scope::Origin),
        401 | 403 | 408 | 500.. => OutcomeClass::Retry(Scope::Origin),
        _ => OutcomeClass::Content(ContentFault::Provider),
    }
}

/// Returns the class of an answer, with the parts of it that are kept. The body is not needed for the class.
pub(super) fn judge(reply: &Reply) -> Answer {
    let status = reply.status.as_u16();
    let class = class(status, reply.host());
    if reply.is_success() {
        let location = reply.headers.get("location").and_then(|url| url.to_str().ok()).map(ToOwned::to_owned);
        let provider = ProviderAnswer { message_id: location, ..ProviderAnswer::default() };
        return reply.answer(class, "accepted").provider(provider);
    }
    let wait = matches!(class, OutcomeClass::Throttled(_) | OutcomeClass::Retry(_)).then_some(reply.retry_after);
    let provider = ProviderAnswer { code: Some(status.to_string()), ..ProviderAnswer::default() };
    reply.answer_with_body(class).provider(provider).wait(wait.flatten())
}

#[cfg(test)]
mod tests;
