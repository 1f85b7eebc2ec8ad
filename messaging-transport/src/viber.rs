//! The channel viber over Viber's own API. Business partners are called by the provider `http`.

mod bot;

pub use bot::ViberBot;
