//! Sends requests to Prometheus.

use super::answer::{self, Answer, SeriesShape};
use super::credentials::{Authorization, Credentials};
use super::tls::{Contents, Tls};
use super::{PrometheusError, SetupError};
use axum::http::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use axum::http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::Instant;

const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// How often the files of TLS are read again.
const REREAD: Duration = Duration::from_secs(10);
/// How many requests are under way at once; Prometheus computes about as many queries.
const CONCURRENT_REQUESTS: usize = 20;
/// An answer larger than this takes long to read, so it is read where nobody waits.
const LARGE_BYTES: usize = 1 << 20;

type Http = HttpClient<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// Where Prometheus is and how it is asked.
#[derive(Clone, Debug)]
pub struct Config {
    /// Its address, with the path that goes before `/api/v1`.
    pub url: String,
    /// How TLS is used.
    pub tls: Tls,
    /// What requests prove themselves with.
    pub credentials: Credentials,
    /// How long an answer may take.
    pub timeout: Duration,
    /// The largest answer.
    pub most_bytes: usize,
    /// How many series an answer may have.
    pub most_series: usize,
}

impl Config {
    /// How long an answer may take, unless it is said otherwise.
    pub const TIMEOUT: Duration = Duration::from_secs(10);
    /// The largest answer, unless it is said otherwise.
    pub const MOST_BYTES: usize = 64 << 20;
    /// How many series an answer may have, unless it is said otherwise.
    pub const MOST_SERIES: usize = 200_000;

    /// Plain requests to this address.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Config {
        Config {
            url: url.into(),
            tls: Tls::default(),
            credentials: Credentials::default(),
            timeout: Config::TIMEOUT,
            most_bytes: Config::MOST_BYTES,
            most_series: Config::MOST_SERIES,
        }
    }
}

/// Hears a query, and the warnings that its answer came with.
type Warned = Box<dyn Fn(&str, &[Arc<str>]) + Send + Sync>;

/// A client of one Prometheus, or of what speaks its API.
pub struct Client {
    base: String,
    tls: Tls,
    spoken: bool,
    authorization: Authorization,
    timeout: Duration,
    max_age: Option<Duration>,
    most_bytes: usize,
    most_series: usize,
    connection: Mutex<Connection>,
    permits: Semaphore,
    warned: Option<Warned>,
}

/// The connections, made with the certificates that were there.
struct Connection {
    http: Http,
    contents: Contents,
    checked: Instant,
}

impl Client {
    /// Checks the configuration; connects to nothing yet.
    ///
    /// # Errors
    /// The address, a file or a header cannot be used.
    pub fn new(config: Config) -> Result<Client, SetupError> {
        let base = config.url.trim_end_matches('/').to_owned();
        let wrong = |problem: &str| Err(SetupError::new(hidden(&config.url), problem));
        let Ok(uri) = base.parse::<Uri>() else { return wrong("not an address") };
        let spoken = match (uri.scheme_str(), uri.authority(), uri.query()) {
            (_, _, Some(_)) => return wrong("must end before the question mark"),
            (Some("http"), Some(_), None) => false,
            (Some("https"), Some(_), None) => true,
            _ => return wrong("must begin with http:// or https:// and a host"),
        };
        if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return wrong(
                "must have no user name: give it by itself, with a file for the password",
            );
        }
        let contents = config.tls.contents()?;
        let http = http(&config.tls, &contents, spoken)?;
        let connection = Connection { http, contents, checked: Instant::now() };
        Ok(Client {
            base,
            spoken,
            authorization: Authorization::new(config.credentials)?,
            timeout: config.timeout,
            max_age: None,
            most_bytes: config.most_bytes,
            most_series: config.most_series,
            tls: config.tls,
            connection: Mutex::new(connection),
            permits: Semaphore::new(CONCURRENT_REQUESTS),
            warned: None,
        })
    }

    /// Asks for samples of at most this age; without one Prometheus goes by its own look-back, usually five minutes.
    #[must_use]
    pub fn with_max_age(self, max_age: Option<Duration>) -> Client {
        Client { max_age, ..self }
    }

    /// Calls this with every query whose answer came with warnings. It must not wait.
    #[must_use]
    pub fn on_warnings(
        mut self,
        warned: impl Fn(&str, &[Arc<str>]) + Send + Sync + 'static,
    ) -> Client {
        self.warned = Some(Box::new(warned));
        self
    }

    /// The address.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.base
    }

    /// What a query gives now.
    ///
    /// # Errors
    /// Prometheus refused, could not be reached in time, or answered what cannot be used.
    pub async fn query(&self, query: &str) -> Result<Answer, PrometheusError> {
        let milliseconds = |time: Duration| format!("{}ms", time.as_millis());
        let (timeout, max_age) = (milliseconds(self.timeout), self.max_age.map(milliseconds));
        let mut fields = vec![("query", query), ("timeout", &*timeout)];
        fields.extend(max_age.as_deref().map(|age| ("lookback_delta", age)));
        let form = form(&fields);
        let (code, body) = self.ask("/api/v1/query", form).await?;
        let most = self.most_series;
        let answer = read(body, move |body| answer::read_query(code, body, most)).await?;
        if let Some(warned) = self.warned.as_ref().filter(|_| !answer.warnings.is_empty()) {
            warned(query, &answer.warnings);
        }
        Ok(answer)
    }

    /// The shapes of the series that a selector finds and that had samples within this time.
    ///
    /// # Errors
    /// As [`Client::query`].
    pub async fn series(
        &self,
        selector: &str,
        within: Duration,
    ) -> Result<Vec<SeriesShape>, PrometheusError> {
        let now = jiff::Timestamp::now().as_second();
        let seconds = i64::try_from(within.as_secs()).unwrap_or(i64::MAX);
        let start = now.saturating_sub(seconds).to_string();
        let form = form(&[("match[]", selector), ("start", &start)]);
        let (code, body) = self.ask("/api/v1/series", form).await?;
        let most = self.most_series;
        read(body, move |body| answer::read_series(code, body, most)).await
    }

    /// Sends a request and reads its answer, all within the timeout.
    async fn ask(&self, path: &str, form: String) -> Result<(u16, Bytes), PrometheusError> {
        let asking = async {
            // The semaphore is never closed.
            let _permit = self.permits.acquire().await;
            let answer = self.send(Method::POST, path, &form, false).await?;
            let answer = match answer.0 {
                // Proxies may allow reading only; servers of old knew no POST.
                405 | 501 => self.send(Method::GET, path, &form, false).await?,
                // A token may have been replaced just now.
                401 => self.send(Method::POST, path, &form, true).await?,
                _ => answer,
            };
            Ok(answer)
        };
        let answer = tokio::time::timeout(self.timeout, asking).await;
        answer.unwrap_or(Err(PrometheusError::Late(self.timeout)))
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        form: &str,
        fresh: bool,
    ) -> Result<(u16, Bytes), PrometheusError> {
        let headers = self.authorization.headers(fresh).await?;
        let request = request(&self.base, method, path, form, headers)?;
        let http = self.http().map_err(|e| PrometheusError::Setup(e.to_string().into()))?;
        let answer = http.request(request).await.map_err(|error| unreachable(&error))?;
        let code = answer.status();
        if code.is_redirection() {
            return Err(redirect(code, answer.headers()));
        }
        let body = Limited::new(answer.into_body(), self.most_bytes).collect().await;
        match body {
            Ok(body) => Ok((code.as_u16(), body.to_bytes())),
            Err(error) if error.is::<LengthLimitError>() => {
                Err(PrometheusError::TooLarge(self.most_bytes))
            }
            Err(error) => Err(unreachable(&*error)),
        }
    }

    /// The connections; new ones if certificates have changed. Files that cannot be read or used leave the
    /// old ones, since they may be about to be replaced.
    fn http(&self) -> Result<Http, SetupError> {
        let mut connection = self.connection.lock();
        if connection.checked.elapsed() >= REREAD {
            connection.checked = Instant::now();
            if let Ok(contents) = self.tls.contents()
                && contents != connection.contents
                && let Ok(http) = http(&self.tls, &contents, self.spoken)
            {
                (connection.http, connection.contents) = (http, contents);
            }
        }
        Ok(connection.http.clone())
    }
}

/// An address as it may be shown: without the password that it may have.
fn hidden(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let end = rest.find('/').unwrap_or(rest.len());
    match rest.get(..end).and_then(|authority| authority.rfind('@')).and_then(|at| rest.get(at..)) {
        Some(host) => format!("{scheme}://***{host}"),
        None => url.to_owned(),
    }
}

fn http(tls: &Tls, contents: &Contents, spoken: bool) -> Result<Http, SetupError> {
    let builder = HttpsConnectorBuilder::new().with_tls_config(tls.config(contents, spoken)?);
    let connector = builder.https_or_http().enable_http1().build();
    Ok(HttpClient::builder(TokioExecutor::new()).build(connector))
}

fn form(pairs: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}

fn request(
    base: &str,
    method: Method,
    path: &str,
    form: &str,
    headers: HeaderMap,
) -> Result<Request<Full<Bytes>>, PrometheusError> {
    let builder = Request::builder().method(method.clone()).header(ACCEPT, JSON);
    let request = if method == Method::GET {
        builder.uri(format!("{base}{path}?{form}")).body(Full::default())
    } else {
        let body = Full::new(Bytes::copy_from_slice(form.as_bytes()));
        builder.uri(format!("{base}{path}")).header(CONTENT_TYPE, FORM).body(body)
    };
    let mut request = request.map_err(|error| PrometheusError::Setup(error.to_string().into()))?;
    request.headers_mut().extend(headers);
    Ok(request)
}

fn redirect(code: StatusCode, headers: &HeaderMap) -> PrometheusError {
    let location = headers.get(LOCATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    PrometheusError::Redirect { code: code.as_u16(), location: location.into() }
}

/// Says the innermost cause: the others only say that there is one.
fn unreachable(error: &(dyn std::error::Error + 'static)) -> PrometheusError {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    PrometheusError::Unreachable(cause.to_string().into())
}

/// Reads an answer; a large one elsewhere, so that nobody waits for it meanwhile.
async fn read<T: Send + 'static>(
    body: Bytes,
    read: impl FnOnce(&[u8]) -> Result<T, PrometheusError> + Send + 'static,
) -> Result<T, PrometheusError> {
    if body.len() < LARGE_BYTES {
        return read(&body);
    }
    let elsewhere = tokio::task::spawn_blocking(move || read(&body)).await;
    elsewhere.unwrap_or_else(|error| Err(PrometheusError::Setup(error.to_string().into())))
}
