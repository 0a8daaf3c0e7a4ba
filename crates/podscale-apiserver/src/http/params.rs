//! Query parameters, and what lists and watches make of them.

use podscale_api::field_error::{FieldError, FieldPath};

use crate::status::{ApiError, ApiResult};
use crate::write::decode::FieldValidation;

/// The parameters of a request in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Params(Vec<(String, String)>);

impl Params {
    pub(crate) fn parse(query: &str) -> Self {
        Self(form_urlencoded::parse(query.as_bytes()).into_owned().collect())
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }

    /// Whether a parameter is given and not `false` or `0`.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| !matches!(value, "false" | "0"))
    }

    pub(crate) fn optional_flag(&self, name: &str) -> Option<bool> {
        self.get(name).map(|value| !matches!(value, "false" | "0"))
    }

    pub(crate) fn integer(&self, name: &str) -> ApiResult<Option<i64>> {
        let Some(text) = self.get(name).filter(|text| !text.is_empty()) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| {
            ApiError::bad_request(format!("strconv.ParseInt: parsing {text:?}: invalid syntax"))
        })
    }

    /// Whether nothing is to be stored.
    pub(crate) fn dry_run(&self, kind: &str) -> ApiResult<bool> {
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

    pub(crate) fn field_validation(&self, kind: &str) -> ApiResult<FieldValidation> {
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
    pub(super) fn parse(params: &Params, watch: bool) -> ApiResult<Self> {
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

/// Which revision to start from; refuses parameters that do not go together.
fn version(
    params: &Params,
    watch: bool,
    continued: bool,
    send_initial_events: Option<bool>,
) -> ApiResult<Version> {
    let text = params.text("resourceVersion");
    let rule = params.text("resourceVersionMatch");
    let problem = if watch {
        watch_problem(rule, send_initial_events)
    } else {
        list_problem(text, rule, continued, send_initial_events)
    };
    if let Some(error) = problem {
        return Err(ApiError::invalid("meta.k8s.io", "ListOptions", "", &[error]));
    }
    if text.is_empty() {
        return Ok(Version::Latest);
    }
    if continued && text != "0" {
        let message = "specifying resource version is not allowed when using continue";
        return Err(ApiError::bad_request(message));
    }
    Ok(match (parse_revision(text, watch)?, rule) {
        (0, _) => Version::Any,
        (number, "Exact") => Version::Exact(number),
        // A page of a list at a version reads that version, unless told otherwise.
        (number, "") if !watch && !continued && params.get("limit").is_some() => {
            Version::Exact(number)
        }
        (number, _) => Version::NotOlderThan(number),
    })
}

/// What is wrong with the `resourceVersionMatch` of a watch.
fn watch_problem(rule: &str, send_initial_events: Option<bool>) -> Option<FieldError> {
    let path = FieldPath::new("resourceVersionMatch");
    match (send_initial_events, rule) {
        (Some(_), "NotOlderThan") | (None, "") => None,
        (Some(_), "") => {
            let words = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            Some(FieldError::forbidden(&path, words))
        }
        (Some(_), other) => Some(FieldError::not_supported(&path, other, &["NotOlderThan"])),
        (None, _) => {
            let words =
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            Some(FieldError::forbidden(&path, words))
        }
    }
}

/// What is wrong with the `resourceVersionMatch` of a list.
fn list_problem(
    version: &str,
    rule: &str,
    continued: bool,
    send_initial_events: Option<bool>,
) -> Option<FieldError> {
    if send_initial_events.is_some() {
        let path = FieldPath::new("sendInitialEvents");
        return Some(FieldError::forbidden(&path, "sendInitialEvents is forbidden for list"));
    }
    if rule.is_empty() {
        return None;
    }
    let path = FieldPath::new("resourceVersionMatch");
    let forbid = |words: &str| Some(FieldError::forbidden(&path, words));
    if version.is_empty() {
        return forbid("resourceVersionMatch is forbidden unless resourceVersion is provided");
    }
    if continued {
        return forbid("resourceVersionMatch is forbidden when continue is provided");
    }
    match rule {
        "Exact" if version == "0" => {
            forbid("resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"")
        }
        "Exact" | "NotOlderThan" => None,
        other => Some(FieldError::not_supported(&path, other, &["Exact", "NotOlderThan", ""])),
    }
}

/// Lists and watches refuse the same text in different words.
fn parse_revision(text: &str, watch: bool) -> ApiResult<u64> {
    text.parse().map_err(|_| {
        let path = FieldPath::new("resourceVersion");
        let detail = format!("strconv.ParseUint: parsing {text:?}: invalid syntax");
        let error = FieldError::invalid(&path, text, detail);
        if watch {
            ApiError::unexplained(error.to_string())
        } else {
            ApiError::bad_request(format!("invalid resource version: {error}"))
        }
    })
}
