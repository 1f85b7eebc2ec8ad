//! Helpers that the tests of provider adapters share.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use messaging_core::ids::{Id as _, MessageId, WorkspaceId};
use messaging_core::ports::transport::{
    Answer, Callback, CallbackAddress, CallbackFault, CallbackProof, CallbackRequest, Content, DeliveryOptions,
    LastLook, Outgoing, ReceiptAddress, Reservation, Transport,
};
use messaging_core::time::Timestamp;
use serde_json::{Map, Value};

/// Returns a JSON object as a map.
pub(crate) fn object(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().expect("an object")
}

/// Returns a message for one recipient, with an address for receipts.
pub(crate) fn outgoing(settings: &Value, to: &str, content: Content) -> Outgoing {
    let receipts = ReceiptAddress {
        token: "receipt-token".to_owned(),
        url: "https://a.example/callbacks/c/receipt-token".to_owned(),
    };
    Outgoing {
        workspace_id: WorkspaceId::from_bytes([1; 16]),
        message_id: MessageId::from_bytes([2; 16]),
        settings: Arc::new(object(settings)),
        recipients: vec![to.to_owned()],
        content,
        last_look: LastLook::default(),
        reservation: Reservation::default(),
        options: DeliveryOptions::default(),
        receipts: Some(receipts),
    }
}

/// Sends a message, and returns the answer for its one recipient.
pub(crate) async fn answer_to(transport: &dyn Transport, outgoing: &Outgoing) -> Answer {
    let sent = transport.send(outgoing).await.expect("outcomes");
    assert_eq!(sent.outcomes.len(), 1);
    sent.outcomes[0].answer().expect("an attempt").clone()
}

/// Returns the callback address of a channel, whose secret is `secret`.
pub(crate) fn channel_address() -> CallbackAddress {
    let url = "https://a.example/callbacks/c/channel-token".to_owned();
    CallbackAddress { url, token: "channel-token".to_owned(), secret: "secret".to_owned() }
}

/// Returns the report of a POST to a channel's callback address.
pub(crate) fn called(
    transport: &dyn Transport,
    settings: &Value,
    headers: &[(&'static str, &str)],
    body: &[u8],
) -> Result<Callback, CallbackFault> {
    called_as(transport, settings, (&Method::POST, &CallbackProof::Channel(channel_address())), headers, body)
}

/// Returns the report of a call with this method and this token.
pub(crate) fn called_as(
    transport: &dyn Transport,
    settings: &Value,
    (method, proof): (&Method, &CallbackProof),
    headers: &[(&'static str, &str)],
    body: &[u8],
) -> Result<Callback, CallbackFault> {
    let header = |(name, value): &(&'static str, &str)| {
        (HeaderName::from_static(name), HeaderValue::from_str(value).expect("a header"))
    };
    let request = CallbackRequest {
        method,
        url: &channel_address().url,
        headers: &headers.iter().map(header).collect::<HeaderMap>(),
        body: &Bytes::copy_from_slice(body),
        proof,
        now: Timestamp::from_millis(0),
    };
    transport.callback(&object(settings), &request)
}
