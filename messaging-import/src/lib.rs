//! Imports contacts, lists, suppressions and templates of another product from the files that it exports.
//!
//! A reader for each [`Product`] turns its files into an [`ImportPlan`], which is the same for all products, and
//! [`apply()`] imports that through operations of the API. Everything is read once before anything is changed, so that
//! a file that cannot be read changes nothing; that first reading is a [`Survey`], which also finds the rows that would
//! be refused.
//!
//! The caller of an import implements [`Api`]: over HTTP, or within the process of the server.
//!
//! ```
//! use messaging_import::{Product, ReadOptions, Refused, Survey};
//!
//! # fn main() -> Result<(), messaging_import::Error> {
//! # let export = std::env::temp_dir().join(format!("messaging-import-{}", std::process::id()));
//! # std::fs::create_dir_all(&export).unwrap();
//! # std::fs::write(export.join("contacts.csv"), "email,tags\nann@example.com,vip\nnobody,\n").unwrap();
//! let plan = messaging_import::read(Product::CsvDir, &export, &ReadOptions::default())?;
//! let mut refused = Refused::new(None)?;
//! let survey = Survey::of(&plan, Some(&mut refused), |_| {})?;
//! assert_eq!((survey.files[0].contacts, survey.files[0].refused), (1, 1));
//! # std::fs::remove_dir_all(&export).unwrap();
//! # Ok(())
//! # }
//! ```
//!
//! **How to add a product.** A file with its name has the patterns of its file names (`LOOKED_FOR`), the assignment of
//! files to readers (`plan`), and the meaning of a row: a function from a row to contacts, suppressions and lists. Its
//! template language is a file below `language`, which translates a template as a whole or not at all.

mod api;
mod apply;
mod csv_dir;
mod directory;
mod error;
pub mod files;
pub mod folder;
mod language;
mod listmonk;
mod mailchimp;
mod person;
mod plan;
mod product;
mod reading;
mod refused;
mod row;
mod sendgrid;
mod template_file;
#[cfg(test)]
mod test_support;

pub use api::{Answer, Api, Call, Operation};
pub use apply::{Applied, Tally, apply};
pub use error::{ApplyError, Error};
pub use plan::{ImportPlan, ReadOptions, Source, Template};
pub use product::{Product, read};
pub use reading::{Counts, Survey};
pub use refused::Refused;
