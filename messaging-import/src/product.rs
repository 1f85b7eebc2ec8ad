//! Products whose exports can be imported.

use std::path::Path;

use crate::error::Error;
use crate::plan::{ImportPlan, ReadOptions};
use crate::{csv_dir, directory, listmonk, mailchimp, sendgrid, template_file};

/// Product that an export comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Product {
    /// listmonk: the CSV of its subscribers, and answers of its API.
    Listmonk,
    /// Mailchimp: the CSV files of audiences, and templates as HTML.
    Mailchimp,
    /// SendGrid: contacts and suppressions as CSV or JSON, templates as JSON.
    Sendgrid,
    /// Files in the project's own formats, for products without a reader.
    CsvDir,
}

impl Product {
    /// All products.
    pub const ALL: [Self; 4] = [Self::Listmonk, Self::Mailchimp, Self::Sendgrid, Self::CsvDir];

    /// Returns the name of the product on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Listmonk => "listmonk",
            Self::Mailchimp => "mailchimp",
            Self::Sendgrid => "sendgrid",
            Self::CsvDir => "csv-dir",
        }
    }

    /// Returns the product with this name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|product| product.name() == name)
    }
}

/// Returns the plan for the files of a directory.
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
