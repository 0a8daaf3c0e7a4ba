//! The page's files, part of the program.

use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use std::hash::{DefaultHasher, Hash, Hasher};

struct Asset {
    name: &'static str,
    mime: &'static str,
    body: &'static [u8],
}

/// The page's palette and frame, which reports of simulations have as well.
pub const STYLE: &str = include_str!("../../assets/style.css");

const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

macro_rules! asset {
    ($name:literal, $mime:expr) => {
        Asset { name: $name, mime: $mime, body: include_bytes!(concat!("../../assets/", $name)) }
    };
}

static PAGE: Asset = asset!("index.html", "text/html; charset=utf-8");

static FILES: [Asset; 13] = [
    asset!("style.css", CSS),
    asset!("detail.css", CSS),
    asset!("chart.css", CSS),
    asset!("icon.svg", "image/svg+xml"),
    asset!("theme.js", SCRIPT),
    asset!("main.js", SCRIPT),
    asset!("feed.js", SCRIPT),
    asset!("format.js", SCRIPT),
    asset!("dom.js", SCRIPT),
    asset!("list.js", SCRIPT),
    asset!("detail.js", SCRIPT),
    asset!("chart.js", SCRIPT),
    asset!("scale.js", SCRIPT),
];

pub(super) async fn page(headers: HeaderMap) -> Response {
    PAGE.answer(&headers)
}

pub(super) async fn file(Path(name): Path<String>, headers: HeaderMap) -> Response {
    match FILES.iter().find(|asset| asset.name == name) {
        Some(asset) => asset.answer(&headers),
        None => super::refuse(StatusCode::NOT_FOUND, "there is no such file"),
    }
}

impl Asset {
    /// Browsers may keep a file but ask each time whether it is still the same, so that a new
    /// version of the program is never shown with an old page.
    fn answer(&self, headers: &HeaderMap) -> Response {
        let mut hasher = DefaultHasher::new();
        self.body.hash(&mut hasher);
        let tag = format!("\"{:016x}\"", hasher.finish());
        let known = headers.get(header::IF_NONE_MATCH).and_then(|tags| tags.to_str().ok());
        let known = known.is_some_and(|tags| tags.split(',').any(|t| t.trim() == tag));
        let about = [(header::CACHE_CONTROL, "no-cache".to_owned()), (header::ETAG, tag)];
        if known {
            return (StatusCode::NOT_MODIFIED, about).into_response();
        }
        (about, [(header::CONTENT_TYPE, self.mime)], self.body).into_response()
    }
}
