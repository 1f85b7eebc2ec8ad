//! What is not there yet. This file goes when it is empty.
#![allow(unused_imports)]
use super::PostgresStore;
use crate::conformance::every_call::prelude::*;
use async_trait::async_trait;
use messaging_core::domain::lane::Lane;
use messaging_core::ports::store::{Claim, ClaimedJob, Jobs, Queues, StoredJob};
use messaging_core::time::Monotonic;
use std::time::Duration;

macro_rules! failure {
    () => {
        StoreError
    };
    ($error:ty) => {
        $error
    };
}
macro_rules! pending {
    (impl $trait:ident { $($name:ident($($argument:ident: $type:ty),*) -> $answer:ty $(, $error:ty)?;)* }) => {
        #[async_trait]
        impl $trait for PostgresStore {
            $(async fn $name(&self, $($argument: $type),*) -> Result<$answer, failure!($($error)?)> {
                $(let _ = $argument;)*
                Err(StoreError::Unavailable.into())
            })*
        }
    };
}
