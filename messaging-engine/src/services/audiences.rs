//! Queries for audiences, with segments in the form that the store evaluates.

use messaging_core::domain::campaign::Audience;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::segment::SegmentKind;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::audiences::AudienceQuery;

use crate::app::App;
use crate::error::Error;

impl App {
    /// Returns the query for the current audience. A dynamic segment is evaluated by its filter, so that contacts that
    /// have just come to match are included; one that is gone matches nobody.
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
        // Not read from the cache: another process may just have changed the zone.
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
