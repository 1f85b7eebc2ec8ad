//! Reasons for which a file cannot be imported.

/// Reason for which a whole file cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Unreadable {
    #[error("the file is not UTF-8; save it as \"CSV UTF-8\" and import it again")]
    NotUtf8,
    #[error("the file has no header; its first row must name the columns")]
    NoHeader,
    #[error(
        "no column is an external_id, email or phone; name the columns so in the header, or say in `mapping` which \
         they are"
    )]
    NoUsableColumn,
    #[error("the file has more than 1000000 rows; split it and import the parts")]
    TooManyRows,
    #[error("row {0} is longer than 1 MiB; look for a quotation mark that is not closed")]
    RowTooLong(u64),
    #[error("the uploaded file is gone from the server; import it again")]
    Missing,
}
