//! The server over real sockets.

mod access_matrix;
mod automations;
mod callbacks;
mod checks;
mod client;
mod connections;
mod cursors;
mod events;
mod floods;
mod harness;
mod limits;
mod malformed;
mod messages;
mod mounted;
mod openapi;
mod standalone;
mod uploads;
mod visits;
mod wire;
mod writers;
