//! The products whose exports are read.

use std::path::Path;

use crate::error::Error;
use crate::plan::{ImportPlan, ReadOptions};
use crate::{csv_dir, directory, listmonk, mailchimp, sendgrid, template_file};

/// The product that an export is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Product {
    /// listmonk: the CSV of its subscribers, and what its API answers.
    Listmonk,
    /// Mailchimp: the CSV files of audiences, and templates as HTML.
    Mailchimp,
    /// SendGrid: contacts and suppressions as CSV or JSON, templates as JSON.
    Sendgrid,
    /// Files in our own formats, for whatever has no reader.
    CsvDir,
}

impl Product {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Listmonk, Self::Mailchimp, Self::Sendgrid, Self::CsvDir];

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Listmonk => "listmonk",
            Self::Mailchimp => "mailchimp",
            Self::Sendgrid => "sendgrid",
            Self::CsvDir => "csv-dir",
        }
    }

    /// The product of a word.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|product| product.name() == name)
    }
}

/// What is to be brought over from the files of a directory.
pub fn read(product: Product, directory: &Path, options: &ReadOptions) -> Result<ImportPlan, Error> {
    if !directory.is_dir() {
        return Err(Error::NoDirectory(directory.to_owned()));
    }
    let entries = directory::entries(directory)?;
    let (mut plan, looked_for) = match product {
        Product::Listmonk => (listmonk::plan(&entries, options)?, listmonk::LOOKED_FOR),
        Product::Mailchimp => (mailchimp::plan(&entries, options)?, mailchimp::LOOKED_FOR),
        Product::Sendgrid => (sendgrid::plan(&entries, options)?, sendgrid::LOOKED_FOR),
        Product::CsvDir => (csv_dir::plan(directory, &entries)?, csv_dir::LOOKED_FOR),
    };
    if plan.sources.is_empty() && plan.templates.is_empty() {
        return Err(Error::NoFiles { directory: directory.to_owned(), product: product.name(), looked_for });
    }
    template_file::tell_apart(&mut plan.templates);
    Ok(plan)
}
