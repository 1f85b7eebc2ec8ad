//! Images that mail shows by their address.
//!
//! Contract section 26. The body of an upload is the file itself; its type is read from its octets, whatever is
//! declared.

use std::borrow::Cow;

use bytes::Bytes;
use http::{Method, StatusCode};
use messaging_core::changes::Write;
use messaging_core::domain::image::header::{ImageHeader, ImageType};
use messaging_core::domain::image::{self, Image};
use messaging_core::ids::{ImageId, WorkspaceId};
use messaging_core::input::{BodyKind, Empty, FileBody, Input, PageQuery};
use messaging_core::ports::store::Slice;
use messaging_core::scope::{Access, Scope};
use messaging_core::time::Timestamp;
use messaging_core::validate::Validate;
use messaging_core::violation::{FieldCode, Violations, refuse};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use crate::app::write_queues::ResourceKey;
use crate::error::Error;
use crate::ops::context::Context;
use crate::ops::operation::{Call, InWorkspace, NoContent, Operation, Upserted};
use crate::ops::page::Page;

/// Templates that a refusal `in_use` names at most.
const MAX_NAMED: usize = 100;

/// An image as shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Image")]
#[non_exhaustive]
pub struct ImageView {
    /// Its id.
    pub id: ImageId,
    /// Address at which everybody gets it, for the `src` of an `img` element.
    pub url: String,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// Length in bytes.
    pub bytes: u64,
    /// SHA-256 digest of the file, 64 hexadecimal digits.
    pub sha256: String,
    /// Time of the upload.
    pub created_at: Timestamp,
}

impl ImageView {
    async fn of(cx: &Context<'_>, image: Image) -> Result<Self, Error> {
        let Image { id, workspace_id, width, height, bytes, sha256, created_at, .. } = image;
        let url = cx.app.image_url(workspace_id, id).await?;
        Ok(Self { id, url, width, height, bytes, sha256, created_at })
    }
}

/// The file of an image: PNG, JPEG, GIF or WebP, at most 5 MiB.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageFile(FileBody);

impl ImageFile {
    /// An image file, to be sent with the media type that its octets tell.
    pub fn new(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        let content_type = ImageHeader::read(&bytes).map_or(ImageType::Png, |header| header.kind).media_type();
        Self(FileBody { content_type, bytes })
    }
}

impl JsonSchema for ImageFile {
    fn schema_name() -> Cow<'static, str> {
        FileBody::schema_name()
    }
    fn inline_schema() -> bool {
        FileBody::inline_schema()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        FileBody::json_schema(generator)
    }
}

impl Validate for ImageFile {
    fn broken_member(&self) -> Option<&'static str> {
        None
    }
}

impl Input for ImageFile {
    const BODY: BodyKind = BodyKind::File(ImageType::MEDIA_TYPES);

    fn of_file(bytes: &[u8]) -> Option<Self> {
        Some(Self(FileBody { content_type: "", bytes: Bytes::copy_from_slice(bytes) }))
    }

    fn as_file(&self) -> Option<&FileBody> {
        Some(&self.0)
    }

    fn check(&self, violations: &mut Violations) {
        let bytes = &self.0.bytes;
        if bytes.is_empty() {
            violations.add("", FieldCode::Required, "the body is the file of an image");
        } else if bytes.len() > image::MAX_BYTES {
            violations.add("", FieldCode::TooLarge, "must be at most 5 MiB");
        } else if ImageHeader::read(bytes).is_none() {
            violations.add("", FieldCode::InvalidFormat, "must be a PNG, JPEG, GIF or WebP image");
        }
    }
}

/// `POST /workspaces/{workspace_id}/images`
pub struct CreateImage;

impl Operation for CreateImage {
    const ID: &'static str = "createImage";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/workspaces/{workspace_id}/images";
    const ACCESS: Access = Access::Scope(Scope::TemplatesWrite);
    const SUCCESS: StatusCode = StatusCode::CREATED;
    const CLI: &'static str = "image create";
    const SUMMARY: &'static str = "Upload an image for mail; the same file again is the same image";
    const BODY_LIMIT: usize = image::MAX_BYTES;
    type Path = InWorkspace;
    type Query = Empty;
    type Body = ImageFile;
    type Output = Upserted<ImageView>;

    // The images of a workspace are counted before one more is added.
    fn serialized_resources(_: &str, call: &Call<Self>) -> Vec<ResourceKey> {
        vec![ResourceKey::of_workspace(call.path.workspace_id)]
    }

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<Upserted<ImageView>, Error> {
        // The operator can name any workspace, also one that is not there.
        let workspace = cx.app.workspace(call.path.workspace_id).await?.ok_or(Error::NotFound)?.id;
        let bytes = call.body.0.bytes;
        let header = ImageHeader::read(&bytes)
            .ok_or_else(|| refuse("", FieldCode::InvalidFormat, "must be a PNG, JPEG, GIF or WebP image"))?;
        let new = Image::new(cx.new_id(), workspace, header, &bytes, cx.now);
        if let Some(known) = cx.store().image_by_digest(workspace, &new.sha256).await? {
            return Ok(Upserted { created: Some(false), record: ImageView::of(cx, known).await? });
        }
        if !cx.store().image_usage(workspace).await?.has_room_for(new.bytes) {
            let rule = "a workspace has at most 1000 images and 250 MiB of them; delete some that no template shows";
            return Err(refuse("", FieldCode::TooManyItems, rule).into());
        }
        cx.change(Write::PutImage(Box::new(new.clone()), bytes));
        Ok(Upserted { created: Some(true), record: ImageView::of(cx, new).await? })
    }
}

/// `GET /workspaces/{workspace_id}/images`
pub struct ListImages;

impl Operation for ListImages {
    const ID: &'static str = "listImages";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces/{workspace_id}/images";
    const ACCESS: Access = Access::Scope(Scope::TemplatesRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "image list";
    const SUMMARY: &'static str = "List the images of a workspace, newest first";
    type Path = InWorkspace;
    type Query = PageQuery;
    type Body = Empty;
    type Output = Page<ImageView>;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<Page<ImageView>, Error> {
        let page = cx.page(&call.query)?;
        let Slice { items, next } = cx.store().images(call.path.workspace_id, page).await?;
        let mut shown = Vec::with_capacity(items.len());
        for image in items {
            shown.push(ImageView::of(cx, image).await?);
        }
        Ok(cx.answer_page(Slice { items: shown, next }, |view| view))
    }
}

/// The path of an operation on an image.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
pub struct ImagePath {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The image.
    pub id: ImageId,
}

/// `DELETE /workspaces/{workspace_id}/images/{id}`
pub struct DeleteImage;

impl Operation for DeleteImage {
    const ID: &'static str = "deleteImage";
    const METHOD: Method = Method::DELETE;
    const PATH: &'static str = "/workspaces/{workspace_id}/images/{id}";
    const ACCESS: Access = Access::Scope(Scope::TemplatesWrite);
    const SUCCESS: StatusCode = StatusCode::NO_CONTENT;
    const CLI: &'static str = "image delete";
    const SUMMARY: &'static str =
        "Delete an image that no template shows; mail that was sent does not show it any more";
    type Path = ImagePath;
    type Query = Empty;
    type Body = Empty;
    type Output = NoContent;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<NoContent, Error> {
        let ImagePath { workspace_id, id } = call.path;
        cx.store().image(workspace_id, id).await?.ok_or(Error::NotFound)?;
        for path in cx.app.image_paths(workspace_id, id) {
            let by = cx.store().templates_with_text(workspace_id, &path, MAX_NAMED).await?;
            if !by.is_empty() {
                return Err(Error::InUse { by: by.into_iter().map(|id| id.to_string()).collect() });
            }
        }
        cx.change(Write::DeleteImage(workspace_id, id));
        Ok(NoContent)
    }
}
