//! Templates for messages: compiled once per version, rendered within bounds.

use std::sync::Arc;

use messaging_core::domain::channel::Channel;
use messaging_core::domain::message::content::TemplateUse;
use messaging_core::domain::template::budget::Limits;
use messaging_core::domain::template::compiled::{Compiled, Rendering, Replaced};
use messaging_core::domain::template::engine::RenderFault;
use messaging_core::domain::template::saving::{self, Made};
use messaging_core::domain::template::values::Values;
use messaging_core::domain::template::{Design, Part, Template};
use messaging_core::ids::{TemplateId, WorkspaceId};
use messaging_core::ports::store::StoreError;

use crate::app::App;
use crate::app::compiled_templates::CompiledKey;
use crate::error::Error;

/// Reason why a stored version cannot be rendered.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unrendered {
    /// The version was removed too long ago.
    #[error("the template is no longer stored")]
    Gone,
    /// The stored version does not compile any more.
    #[error("the template cannot be compiled")]
    Broken,
    /// Rendering it failed.
    #[error("{} of the template {fault}", .part.pointer().trim_start_matches('/'))]
    Failed {
        /// The part of the template.
        part: Part,
        /// Fault that rendering the part ended with.
        fault: RenderFault,
    },
    /// The rendered result cannot be sent.
    #[error("{0}")]
    Unsendable(String),
    /// The queue for such work is full; it can be tried again.
    #[error("there is no room to render it")]
    Busy,
    /// The store failed; it can be tried again.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl App {
    /// Checks a design and derives the form that is sent.
    pub(crate) async fn make_template(&self, channel: Channel, design: Design) -> Result<Made, Error> {
        let made = self.template_work().run(move || saving::make(channel, design)).await?;
        made.map_err(Error::Validation)
    }

    /// Returns a compiled version.
    pub(crate) async fn compiled_template(
        &self,
        workspace: WorkspaceId,
        template: TemplateId,
        version: u32,
    ) -> Result<Arc<Compiled>, Unrendered> {
        self.compiled_version(CompiledKey { workspace, template, version, campaign: None }).await
    }

    /// Returns a version compiled as a campaign sends it.
    pub(crate) async fn compiled_for_campaign(
        &self,
        workspace: WorkspaceId,
        used: TemplateUse,
        replaced: Replaced,
    ) -> Result<Arc<Compiled>, Unrendered> {
        let TemplateUse { id: template, version } = used;
        self.compiled_version(CompiledKey { workspace, template, version, campaign: Some(replaced) }).await
    }

    async fn compiled_version(&self, key: CompiledKey) -> Result<Arc<Compiled>, Unrendered> {
        if let Some(compiled) = self.compiled_templates().get(&key) {
            return Ok(compiled);
        }
        let template: Template =
            self.store().template_version(key.workspace, key.template, key.version).await?.ok_or(Unrendered::Gone)?;
        let replaced = key.campaign.clone();
        let compile = move || match replaced {
            None => Compiled::of(&template).map_err(|_| Unrendered::Broken),
            Some(replaced) => Compiled::of_campaign(&template, &replaced).map_err(|_| Unrendered::Broken),
        };
        let compiled = self.template_work().run(compile).await.map_err(|_| Unrendered::Busy)?;
        let compiled = Arc::new(compiled?);
        self.compiled_templates().put(key, &compiled);
        Ok(compiled)
    }

    /// Compiles a template that is not stored.
    pub(crate) async fn compiled_draft(&self, template: Template) -> Result<Arc<Compiled>, Unrendered> {
        let compile = move || Compiled::of(&template).map_err(|_| Unrendered::Broken);
        let compiled = self.template_work().run(compile).await.map_err(|_| Unrendered::Busy)?;
        compiled.map(Arc::new)
    }

    /// Renders a version. Most take some microseconds and are rendered on the calling thread; one that takes longer
    /// begins anew on a thread where nothing waits behind it.
    pub(crate) async fn render(&self, compiled: &Arc<Compiled>, values: Values) -> Result<Rendering, Unrendered> {
        self.render_with(compiled, values, Compiled::render).await
    }

    /// Renders the subject of a version alone, in the same way.
    pub(crate) async fn render_subject(
        &self,
        compiled: &Arc<Compiled>,
        values: Values,
    ) -> Result<Option<String>, Unrendered> {
        let subject = |compiled: &Compiled, values: Values, limits: Limits| {
            compiled.render_subject(values, limits).map_err(|fault| (Part::Subject, fault))
        };
        self.render_with(compiled, values, subject).await
    }

    async fn render_with<T: Send + 'static>(
        &self,
        compiled: &Arc<Compiled>,
        values: Values,
        render: impl FnOnce(&Compiled, Values, Limits) -> Result<T, (Part, RenderFault)> + Copy + Send + 'static,
    ) -> Result<T, Unrendered> {
        let failed = |(part, fault)| Unrendered::Failed { part, fault };
        match render(compiled, values.clone(), Limits::SHORT) {
            Err((_, RenderFault::Limits)) => {}
            rendering => return rendering.map_err(failed),
        }
        let compiled = Arc::clone(compiled);
        let rendering = self.template_work().run(move || render(&compiled, values, Limits::WHOLE)).await;
        rendering.map_err(|_| Unrendered::Busy)?.map_err(failed)
    }
}
