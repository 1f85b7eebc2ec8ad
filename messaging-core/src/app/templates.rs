//! Templates as messages use them: compiled once per version, rendered within bounds.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::app::App;
use crate::app::heavy_work::HeavyWork;
use crate::domain::channel::Channel;
use crate::domain::template::budget::Limits;
use crate::domain::template::compiled::{Compiled, Rendering};
use crate::domain::template::engine::RenderFault;
use crate::domain::template::saving::{self, Made};
use crate::domain::template::values::Values;
use crate::domain::template::{Design, Part, Template};
use crate::error::Error;
use crate::ids::{TemplateId, WorkspaceId};
use crate::ports::store::StoreError;

/// Designs that are made, and long renderings, at a time; each takes a processor.
const AT_A_TIME: usize = 2;
/// Calls that may wait for their turn.
const WAITING: usize = 64;

/// Versions that are kept compiled.
const CAPACITY: usize = 1_000;
/// Bytes of source of the versions that are kept; compiled they are some times as large.
const MAX_KEPT: usize = 32 << 20;

/// The queue for what takes a processor for a while.
pub(super) fn queue() -> HeavyWork {
    HeavyWork::new(AT_A_TIME, WAITING)
}

/// The compiled versions. They never change, so an entry is right for as long as it is kept.
#[derive(Debug, Default)]
pub(super) struct CompiledVersions(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    entries: HashMap<(WorkspaceId, TemplateId, u32), Arc<Compiled>>,
    bytes: usize,
}

impl CompiledVersions {
    fn get(&self, key: &(WorkspaceId, TemplateId, u32)) -> Option<Arc<Compiled>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).entries.get(key).cloned()
    }

    fn put(&self, key: (WorkspaceId, TemplateId, u32), compiled: &Arc<Compiled>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.entries.len() >= CAPACITY || kept.bytes + compiled.size() > MAX_KEPT {
            *kept = Kept::default();
        }
        if kept.entries.insert(key, Arc::clone(compiled)).is_none() {
            kept.bytes += compiled.size();
        }
    }
}

/// Why a stored version is not rendered.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unrendered {
    /// It was removed too long ago.
    #[error("the template is no longer stored")]
    Gone,
    /// What was saved does not compile any more.
    #[error("the template cannot be compiled")]
    Broken,
    /// Rendering it failed.
    #[error("{} of the template {fault}", .part.pointer().trim_start_matches('/'))]
    Failed {
        /// Which part.
        part: Part,
        /// What went wrong.
        fault: RenderFault,
    },
    /// Not now.
    #[error("there is no room to render it")]
    Busy,
    /// Not now: the store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl App {
    /// Checks a design and makes of it what is sent.
    pub(crate) async fn make_template(&self, channel: Channel, design: Design) -> Result<Made, Error> {
        let made = self.template_work().run(move || saving::make(channel, design)).await?;
        made.map_err(Error::Validation)
    }

    /// A version, compiled.
    pub(crate) async fn compiled_template(
        &self,
        workspace: WorkspaceId,
        id: TemplateId,
        version: u32,
    ) -> Result<Arc<Compiled>, Unrendered> {
        let key = (workspace, id, version);
        if let Some(compiled) = self.compiled_templates().get(&key) {
            return Ok(compiled);
        }
        let template: Template =
            self.store().template_version(workspace, id, version).await?.ok_or(Unrendered::Gone)?;
        let compile = move || Compiled::of(&template).map_err(|_| Unrendered::Broken);
        let compiled = self.template_work().run(compile).await.map_err(|_| Unrendered::Busy)?;
        let compiled = Arc::new(compiled?);
        self.compiled_templates().put(key, &compiled);
        Ok(compiled)
    }

    /// Renders a version. Most take some microseconds and are rendered where they are asked for; one that
    /// takes longer begins anew on a thread where nobody waits behind it.
    pub(crate) async fn render(&self, compiled: &Arc<Compiled>, values: Values) -> Result<Rendering, Unrendered> {
        let failed = |(part, fault)| Unrendered::Failed { part, fault };
        match compiled.render(values.clone(), Limits::SHORT) {
            Err((_, RenderFault::Limits)) => {}
            rendering => return rendering.map_err(failed),
        }
        let compiled = Arc::clone(compiled);
        let rendering = self.template_work().run(move || compiled.render(values, Limits::WHOLE)).await;
        rendering.map_err(|_| Unrendered::Busy)?.map_err(failed)
    }
}
