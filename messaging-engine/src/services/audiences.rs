//! Audiences as they are looked for: segments become what the store evaluates.

use messaging_core::domain::campaign::Audience;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::segment::SegmentKind;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::audiences::AudienceQuery;

use crate::app::App;
use crate::error::Error;

impl App {
    /// What finds an audience at the moment. A dynamic segment is looked for by its filter, so that whoever has just
    /// come to match belongs to it; one that is gone names nobody.
    pub(crate) async fn audience_query(
        &self,
        workspace: WorkspaceId,
        channel: Channel,
        audience: &Audience,
        wants_zones: bool,
    ) -> Result<AudienceQuery, Error> {
        let (mut segments, mut filters) = (Vec::new(), Vec::new());
        if !audience.segment_ids.is_empty() {
            let graph = self.segment_graph(workspace).await?;
            for id in &audience.segment_ids {
                match graph.get(*id) {
                    Some(segment) if segment.kind == SegmentKind::Static => segments.push(*id),
                    Some(segment) => filters.push(graph.resolve(segment.filter.tree()).map_err(Error::internal)?),
                    None => {}
                }
            }
        }
        // Not from the cache: another process may just have changed the zone.
        let found = self.store().workspace(workspace).await?;
        let zone = found.map_or(jiff::tz::TimeZone::UTC, |stored| stored.record.zone());
        Ok(AudienceQuery {
            channel,
            viber: self.viber_service_for(workspace, channel).await?,
            lists: audience.list_ids.clone(),
            segments,
            filters,
            excluded: audience.exclude_list_ids.clone(),
            now: self.now(),
            zone,
            wants_zones,
        })
    }
}
