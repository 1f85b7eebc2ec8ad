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

/// The listeners that the settings name, with their addresses and not answering yet.
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

    /// Where mail comes back to, if anywhere.
    pub(super) fn smtp_addr(&self) -> Option<SocketAddr> {
        self.inbound.as_ref().map(Inbound::local_addr)
    }

    /// Where mail is submitted to, if anywhere.
    pub(super) fn submission_addr(&self) -> Option<SocketAddr> {
        self.submission.as_ref().map(Submission::local_addr)
    }

    /// The files in a data directory that name the addresses.
    pub(super) fn files(&self, data: &Path) -> Vec<(PathBuf, SocketAddr)> {
        let named = [(SMTP_LISTEN, self.smtp_addr()), (SUBMISSION_LISTEN, self.submission_addr())];
        named.into_iter().filter_map(|(file, address)| Some((data.join(file), address?))).collect()
    }

    /// Says where they listen.
    pub(super) fn announce(&self) {
        if let Some(address) = self.smtp_addr() {
            tracing::info!(%address, "listening for returned mail");
        }
        if let Some(address) = self.submission_addr() {
            tracing::info!(%address, "listening for submitted mail");
        }
    }

    /// Answers until `stopping` is true; then finishes what is on its way.
    pub(super) async fn run(self, app: &App, sink: Arc<dyn SubmissionSink>, stopping: watch::Receiver<bool>) {
        let stop = |mut stopping: watch::Receiver<bool>| async move {
            // An error means that whoever could say so is gone, which is as good.
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
