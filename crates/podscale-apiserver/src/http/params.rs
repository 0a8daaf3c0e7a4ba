//! Query parameters, and what lists and watches make of them.

use podscale_api::field_error::{FieldError, FieldPath};

use crate::status::{ApiError, ApiResult};
use crate::write::decode::FieldValidation;

/// The parameters of a request in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Params(Vec<(String, String)>);

impl Params {
    pub fn parse(query: &str) -> Self {
        Self(form_urlencoded::parse(query.as_bytes()).into_owned().collect())
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }

    pub fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }

    /// Whether a parameter is given and not `false` or `0`.
    pub fn flag(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| !matches!(value, "false" | "0"))
    }

    pub fn optional_flag(&self, name: &str) -> Option<bool> {
        self.get(name).map(|value| !matches!(value, "false" | "0"))
    }

    pub fn integer(&self, name: &str) -> ApiResult<Option<i64>> {
        let Some(text) = self.get(name).filter(|text| !text.is_empty()) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| {
            ApiError::bad_request(format!("strconv.ParseInt: parsing {text:?}: invalid syntax"))
        })
    }

    /// Whether nothing is to be stored.
    pub fn dry_run(&self, kind: &str) -> ApiResult<bool> {
        let mut dry = false;
        for (_, value) in self.0.iter().filter(|(name, _)| name == "dryRun") {
            if value != "All" {
                let path = FieldPath::new("dryRun");
                let shown = podscale_api::field_error::BadValue::json(&[value]);
                let error = FieldError::not_supported(&path, shown, &["All"]);
                return Err(ApiError::invalid("meta.k8s.io", kind, "", &[error]));
            }
            dry = true;
        }
        Ok(dry)
    }

    pub fn field_validation(&self, kind: &str) -> ApiResult<FieldValidation> {
        match self.text("fieldValidation") {
            "" | "Warn" => Ok(FieldValidation::Warn),
            "Ignore" => Ok(FieldValidation::Ignore),
            "Strict" => Ok(FieldValidation::Strict),
            other => {
                let path = FieldPath::new("fieldValidation");
                let error =
                    FieldError::not_supported(&path, other, &["", "Ignore", "Strict", "Warn"]);
                Err(ApiError::invalid("meta.k8s.io", kind, "", &[error]))
            }
        }
    }
}

/// Which revision a list or watch is to start from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    /// The newest.
    Latest,
    /// Any; the newest will do.
    Any,
    /// This one or a newer one.
    NotOlderThan(u64),
    /// Exactly this one.
    Exact(u64),
}

/// The parameters of a list or watch.
#[derive(Debug, Clone)]
pub(crate) struct ListParams {
    pub version: Version,
    pub limit: Option<usize>,
    pub token: Option<String>,
    pub timeout_seconds: Option<u64>,
    pub bookmarks: bool,
    pub send_initial_events: Option<bool>,
}

impl ListParams {
    pub fn parse(params: &Params, watch: bool) -> ApiResult<Self> {
        let token = params.get("continue").filter(|token| !token.is_empty()).map(str::to_owned);
        let send_initial_events = params.optional_flag("sendInitialEvents");
        let version = version(params, watch, token.is_some(), send_initial_events)?;
        let limit = params.integer("limit")?.filter(|limit| *limit > 0);
        let timeout = params.integer("timeoutSeconds")?.filter(|seconds| *seconds > 0);
        Ok(Self {
            version,
            limit: limit.and_then(|limit| usize::try_from(limit).ok()),
            token,
            timeout_seconds: timeout.and_then(|seconds| u64::try_from(seconds).ok()),
            bookmarks: params.flag("allowWatchBookmarks"),
            send_initial_events,
        })
    }
}

fn version(
    params: &Params,
    watch: bool,
    continued: bool,
    send_initial_events: Option<bool>,
) -> ApiResult<Version> {
    let text = params.text("resourceVersion");
    let rule = params.text("resourceVersionMatch");
    let path = FieldPath::new("resourceVersionMatch");
    let refuse =
        |error: FieldError| Err(ApiError::invalid("meta.k8s.io", "ListOptions", "", &[error]));
    let forbid = |words: &str| refuse(FieldError::forbidden(&path, words));
    if watch {
        match (send_initial_events, rule) {
            (Some(_), "") => {
                return forbid(
                    "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
                );
            }
            (Some(_), "NotOlderThan") | (None, "") => {}
            (None, _) => {
                return forbid(
                    "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
                );
            }
            (Some(_), other) => {
                return refuse(FieldError::not_supported(&path, other, &["NotOlderThan"]));
            }
        }
    } else {
        if send_initial_events.is_some() {
            let path = FieldPath::new("sendInitialEvents");
            return refuse(FieldError::forbidden(&path, "sendInitialEvents is forbidden for list"));
        }
        if !rule.is_empty() && text.is_empty() {
            return forbid("resourceVersionMatch is forbidden unless resourceVersion is provided");
        }
        if !rule.is_empty() && continued {
            return forbid("resourceVersionMatch is forbidden when continue is provided");
        }
        if !matches!(rule, "" | "Exact" | "NotOlderThan") {
            let allowed = ["Exact", "NotOlderThan", ""];
            return refuse(FieldError::not_supported(&path, rule, &allowed));
        }
        if rule == "Exact" && text == "0" {
            return forbid("resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
        }
    }
    if text.is_empty() {
        return Ok(Version::Latest);
    }
    if continued && text != "0" {
        let message = "specifying resource version is not allowed when using continue";
        return Err(ApiError::bad_request(message));
    }
    let number: u64 = text.parse().map_err(|_| {
        let path = FieldPath::new("resourceVersion");
        let detail = format!("strconv.ParseUint: parsing {text:?}: invalid syntax");
        let error = FieldError::invalid(&path, text, detail);
        if watch {
            ApiError::unexplained(error.to_string())
        } else {
            ApiError::bad_request(format!("invalid resource version: {error}"))
        }
    })?;
    Ok(match (number, rule) {
        (0, _) => Version::Any,
        (number, "Exact") => Version::Exact(number),
        // A page of a list at a version reads that version, unless told otherwise.
        (number, "") if !watch && !continued && params.get("limit").is_some() => {
            Version::Exact(number)
        }
        (number, _) => Version::NotOlderThan(number),
    })
}
