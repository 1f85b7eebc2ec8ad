//! The calls of the store port other than commits and jobs: each is passed to the database unchanged.

use async_trait::async_trait;
use messaging_conformance::every_call::prelude::*;
use messaging_conformance::{failure_of_call, for_every_file_call, for_every_read};
use messaging_core::ports::Store as _;

use super::FaultyStore;
use crate::blocking::wait;

/// Implements traits of the port by handing every call on, between two points where the process may end.
macro_rules! hand_on {
    ($store:ident => $target:expr; $(impl $trait:ident { $($name:ident($($argument:ident: $type:ty),*) -> $answer:ty $(, $error:ty)?;)* })*) => {$(
        #[async_trait]
        impl $trait for FaultyStore {
            $(
                async fn $name(&self, $($argument: $type),*) -> Result<$answer, failure_of_call!($($error)?)> {
                    self.before(stringify!($name)).await?;
                    let $store = self.database();
                    let answer = wait($target.$name($($argument),*));
                    self.after(stringify!($name), answer.is_ok()).await;
                    answer
                }
            )*
        }
    )*};
}

macro_rules! hand_on_reads {
    ($($list:tt)*) => { hand_on! { database => database; $($list)* } };
}

macro_rules! hand_on_files {
    (impl BlobStore { $($blobs:tt)* } impl Uploads { $($uploads:tt)* }) => {
        hand_on! { database => database.blobs(); impl BlobStore { $($blobs)* } }
        hand_on! { database => database.uploads(); impl Uploads { $($uploads)* } }
    };
}

for_every_read!(hand_on_reads);
for_every_file_call!(hand_on_files);
