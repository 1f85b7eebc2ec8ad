//! The cases that every store must pass.
