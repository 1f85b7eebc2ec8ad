//! Pure rules: values in, values out. No `async`, no clock, no ports.

pub mod address;
pub mod channel;
