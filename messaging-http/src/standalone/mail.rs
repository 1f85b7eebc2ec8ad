//! The SMTP listeners of a server: for returned mail, and for submission.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use messaging_core::ports::clock::SystemClock;
use messaging_engine::App;
use messaging_transport::inbound::Inbound;
use messaging_transport::smtp_server::{ServerTls, SmtpServerOptions};
use messaging_transport::submission::{Submission, SubmissionSink};
use tokio::sync::watch;

use super::data_directory::{SMTP_LISTEN, SUBMISSION_LISTEN};
use super::start_error::StartError;
use crate::settings::{Settings, TlsFiles};

/// The listeners of the settings: bound to their addresses, not answering yet.
#[derive(Debug)]
pub(super) struct MailListeners {
    inbound: Option<Inbound>,
    submission: Option<Submission>,
}

impl MailListeners {
    /// Reads the certificate and listens.
    pub(super) fn bind(settings: &Settings) -> Result<Self, StartError> {
        let load = |files: &TlsFiles| ServerTls::load(&files.certificate, &files.key, Arc::new(SystemClock));
        let tls = settings.tls.as_ref().map(load).transpose()?.map(Arc::new);
        let hostname = settings.engine.hostname.as_str();
        let failed = |flag, address| move |source| StartError::Listen { flag, address, source };
        let inbound = settings.smtp_listen.map(|address| {
            let options = SmtpServerOptions { tls: tls.clone(), ..SmtpServerOptions::returned_mail(hostname) };
            Inbound::bind(address, options).map_err(failed("--smtp-listen", address))
        });
        let submission = settings.submission_listen.map(|address| {
            let options = SmtpServerOptions { tls: tls.clone(), ..SmtpServerOptions::submission(hostname) };
            Submission::bind(address, options).map_err(failed("--submission-listen", address))
        });
        let (inbound, submission) = (inbound.transpose()?, submission.transpose()?);
        Ok(Self { inbound, submission })
    }

    /// Address of the listener for returned mail; `None` if it is off.
    pub(super) fn smtp_addr(&self) -> Option<SocketAddr> {
        self.inbound.as_ref().map(Inbound::local_addr)
    }

    /// Address of the listener for submissions; `None` if it is off.
    pub(super) fn submission_addr(&self) -> Option<SocketAddr> {
        self.submission.as_ref().map(Submission::local_addr)
    }

    /// The files in a data directory that hold the addresses.
    pub(super) fn files(&self, data: &Path) -> Vec<(PathBuf, SocketAddr)> {
        let named = [(SMTP_LISTEN, self.smtp_addr()), (SUBMISSION_LISTEN, self.submission_addr())];
        named.into_iter().filter_map(|(file, address)| Some((data.join(file), address?))).collect()
    }

    /// Logs the addresses.
    pub(super) fn announce(&self) {
        if let Some(address) = self.smtp_addr() {
            tracing::info!(%address, "listening for returned mail");
        }
        if let Some(address) = self.submission_addr() {
            tracing::info!(%address, "listening for submitted mail");
        }
    }

    /// Answers until `stopping` is true; then finishes the open conversations.
    pub(super) async fn run(self, app: &App, sink: Arc<dyn SubmissionSink>, stopping: watch::Receiver<bool>) {
        let stop = |mut stopping: watch::Receiver<bool>| async move {
            // An error means that the sender is gone, which has the same effect.
            drop(stopping.wait_for(|stopping| *stopping).await);
        };
        let returned = async {
            if let Some(inbound) = self.inbound {
                inbound.run(Arc::new(app.clone()), stop(stopping.clone())).await;
            }
        };
        let submitted = async {
            if let Some(submission) = self.submission {
                submission.run(sink, stop(stopping.clone())).await;
            }
        };
        tokio::join!(returned, submitted);
    }
}
