//! Reads whole audiences from a store, for comparisons.

use std::collections::HashSet;
use std::sync::Arc;

use messaging_core::domain::campaign::audience::{AudienceVerdict, number_at};
use messaging_core::ids::{CampaignId, ContactId, Id as _, WorkspaceId};
use messaging_core::ports::store::Store;
use messaging_core::ports::store::audiences::{AudiencePiece, AudiencePreview, AudienceQuery};

/// All pieces of an audience, with their duplicates.
pub(super) async fn pieces(store: &dyn Store, workspace: WorkspaceId, query: &AudienceQuery) -> Vec<AudiencePiece> {
    let query = Arc::new(query.clone());
    let (mut pieces, mut taken, mut next) = (Vec::new(), HashSet::new(), None);
    loop {
        let mut piece = store.audience_piece(workspace, &query, next).await.expect("a piece");
        assert!(next.is_none_or(|asked| asked == piece.piece), "the piece that was asked for");
        piece.facts.find_duplicates(&piece.addresses, &mut taken);
        next = piece.next;
        assert!(next.is_none_or(|next| next > piece.piece), "pieces come in their order");
        pieces.push(piece);
        if next.is_none() {
            return pieces;
        }
    }
}

/// The verdict on each contact of an audience, by the number of the contact.
pub(super) async fn verdicts(
    store: &dyn Store,
    workspace: WorkspaceId,
    query: &AudienceQuery,
) -> Vec<(u64, AudienceVerdict)> {
    let mut all = Vec::new();
    for piece in pieces(store, workspace, query).await {
        let judged = piece.facts.judge();
        let verdict = |place| (number_at(piece.piece, place), judged.verdict_at(place).expect("matched"));
        all.extend(piece.facts.matched.iter().map(verdict));
    }
    all
}

/// [`verdicts`] with the ids of contacts in place of their numbers.
pub(super) async fn contact_verdicts(
    store: &dyn Store,
    workspace: WorkspaceId,
    query: &AudienceQuery,
) -> Vec<(ContactId, AudienceVerdict)> {
    let verdicts = verdicts(store, workspace, query).await;
    let numbers: Vec<u64> = verdicts.iter().map(|(number, _)| *number).collect();
    let contacts = store
        .campaign_recipients(workspace, CampaignId::from_bytes([0; 16]), query.channel, query.viber, &numbers)
        .await
        .expect("contacts");
    assert_eq!(contacts.iter().map(|contact| contact.number).collect::<Vec<_>>(), numbers);
    contacts.into_iter().zip(verdicts).map(|(contact, (_, verdict))| (contact.contact_id, verdict)).collect()
}

pub(super) async fn preview(store: &dyn Store, workspace: WorkspaceId, query: &AudienceQuery) -> AudiencePreview {
    store.preview_audience(workspace, &Arc::new(query.clone())).await.expect("a preview")
}
