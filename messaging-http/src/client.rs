//! A client of the API.
pub struct Client; pub struct ClientError;
