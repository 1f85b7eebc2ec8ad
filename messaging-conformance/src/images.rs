//! Cases for images.

use bytes::Bytes;
use messaging_core::changes::{Expect, Write};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::image::header::{ImageHeader, ImageType};
use messaging_core::domain::image::{Image, ImageUsage};
use messaging_core::domain::template::Template;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::Store;

use super::sample::{at, id, template};
use super::{all_pages, first, put, refuse};

/// An image of some octets, which need not be one.
pub(super) fn image(workspace: WorkspaceId, octets: &[u8]) -> Image {
    let header = ImageHeader { kind: ImageType::Png, width: 640, height: 480 };
    Image::new(id(), workspace, header, octets, at(1))
}

/// The write that stores an image.
pub(super) fn add(image: &Image, octets: &[u8]) -> Write {
    Write::PutImage(Box::new(image.clone()), Bytes::copy_from_slice(octets))
}

/// An image is found by id and by digest with all fields, and its octets come back, also those of the longest one.
pub async fn images_round_trip(store: &dyn Store) {
    let workspace: WorkspaceId = id();
    let octets: Vec<u8> = (0..251_u8).cycle().take(5 << 20).collect();
    let mine = image(workspace, &octets);
    put(store, [add(&mine, &octets)]).await;
    assert_eq!(store.image(workspace, mine.id).await.unwrap(), Some(mine.clone()));
    assert_eq!(store.image_by_digest(workspace, &mine.sha256).await.unwrap(), Some(mine.clone()));
    assert_eq!(store.image_by_digest(workspace, &image(workspace, b"other").sha256).await.unwrap(), None);
    assert!(store.image_bytes(workspace, mine.id).await.unwrap().is_some_and(|found| found == octets));
    for _ in 0..2 {
        put(store, [Write::DeleteImage(workspace, mine.id)]).await;
        assert_eq!(store.image(workspace, mine.id).await.unwrap(), None);
        assert_eq!(store.image_bytes(workspace, mine.id).await.unwrap(), None);
    }
    put(store, [add(&mine, &octets)]).await;
}

/// The same octets are one image of a workspace, and images of several workspaces.
pub async fn octets_are_stored_once_in_a_workspace(store: &dyn Store) {
    let (mine, other): (WorkspaceId, WorkspaceId) = (id(), id());
    put(store, [add(&image(mine, b"a"), b"a"), add(&image(other, b"a"), b"a")]).await;
    refuse(store, [add(&image(mine, b"a"), b"a")]).await;
    put(store, [add(&image(mine, b"bcd"), b"bcd")]).await;
    assert_eq!(store.image_usage(mine).await.unwrap(), ImageUsage { images: 2, bytes: 4 });
    assert_eq!(store.image_usage(other).await.unwrap(), ImageUsage { images: 1, bytes: 1 });
    assert_eq!(store.image_usage(id()).await.unwrap(), ImageUsage::default());
}

/// Images are listed newest first, each once, page by page.
pub async fn images_are_listed_by_pages(store: &dyn Store) {
    let workspace: WorkspaceId = id();
    let mut images = Vec::new();
    for n in 0..7_u8 {
        images.push(image(workspace, &[n]));
        put(store, [add(&images[usize::from(n)], &[n])]).await;
    }
    images.sort_by_key(|image| std::cmp::Reverse(image.id));
    let listed = all_pages(3, |page| store.images(workspace, page), async || {}).await;
    assert_eq!(listed, images);
    assert_eq!(store.images(id(), first(9)).await.unwrap().items, []);
}

/// Templates are found by a text of their current version.
pub async fn templates_are_found_by_a_text(store: &dyn Store) {
    let with = |mut template: Template, html: &str| {
        template.design.html = Some(html.to_owned());
        template
    };
    let workspace: WorkspaceId = id();
    let shows = with(template(workspace, Channel::Email), "<img src=\"https://a.example/i/Tok-en_1\">");
    let other = with(template(workspace, Channel::Email), "<p>/i/Tok-en_2</p>");
    let add = |template: &Template| Write::put(Box::new(template.clone()), Expect::Absent);
    put(store, [add(&shows), add(&other)]).await;
    let found = async |text: &str| store.templates_with_text(workspace, text, 9).await.unwrap();
    assert_eq!(found("/i/Tok-en_1").await, [shows.id]);
    assert_eq!(found("/i/tok-en_1").await, []);
    assert_eq!(store.templates_with_text(workspace, "/i/Tok-en_", 1).await.unwrap().len(), 1);
    assert_eq!(store.templates_with_text(id(), "/i/Tok-en_1", 9).await.unwrap(), []);
    let mut changed = with(shows.clone(), "<p>nothing</p>");
    changed.version += 1;
    put(store, [Write::put(Box::new(changed), Expect::Revision(1))]).await;
    assert_eq!(found("/i/Tok-en_1").await, []);
    put(store, [Write::DeleteTemplate(workspace, other.id, at(5))]).await;
    assert_eq!(found("/i/Tok-en_2").await, []);
}

/// An image belongs to its workspace.
pub async fn other_workspaces_are_not_there(store: &dyn Store) {
    let (workspace, other): (WorkspaceId, WorkspaceId) = (id(), id());
    let mine = image(workspace, b"a");
    put(store, [add(&mine, b"a")]).await;
    assert_eq!(store.image(other, mine.id).await.unwrap(), None);
    assert_eq!(store.image_bytes(other, mine.id).await.unwrap(), None);
    assert_eq!(store.image_by_digest(other, &mine.sha256).await.unwrap(), None);
    put(store, [Write::DeleteImage(other, mine.id)]).await;
    assert_eq!(store.image(workspace, mine.id).await.unwrap(), Some(mine));
}
