//! What SQLite alone does.
