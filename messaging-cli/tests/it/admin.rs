//! `admin`: straight on the database.

