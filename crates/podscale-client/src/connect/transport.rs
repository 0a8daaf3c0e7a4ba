//! The way to an API server: one connection that all calls share, where the server speaks HTTP/2, so
//! that what is sent at the same moment travels together.

use crate::instrument::RequestLayer;
use crate::rate_limit::RateLimit;
use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder};
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{Body, ClientBuilder, ConfigExt};
use kube::{Client, Config, Error};
use std::time::Duration;
use tower::{BoxError, ServiceBuilder, ServiceExt};

/// How long a connection may take to be established.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a connection may be silent while something is awaited from it. Watches get a sign of life
/// every minute; one that does not is opened again, which costs little.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);
/// How often a shared connection is pinged, and how long its answer may take.
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(15);
/// How much of one answer, and of all together, may be on its way unread. Lists of many objects would
/// crawl with less.
const ANSWER_WINDOW_BYTES: u32 = 4 * 1024 * 1024;
const WINDOW_BYTES: u32 = 16 * 1024 * 1024;

/// A client that tries nothing twice: what to do after a failure is decided where the call is made. The
/// rate limit is outside of what measures: how long a call waits for it is no property of the server.
pub(super) fn client(
    mut config: Config,
    requests: RequestLayer,
    rate_limit: Option<RateLimit>,
) -> Result<Client, Error> {
    if config.proxy_url.is_some() {
        config.default_retry = false;
        let builder = ClientBuilder::try_from(config)?.with_layer(&requests);
        return Ok(match rate_limit {
            Some(rate_limit) => builder.with_layer(&rate_limit).build(),
            None => builder.build(),
        });
    }
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    // Small frames must not wait for one another.
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(PING_INTERVAL));
    let mut tls = HttpsConnectorBuilder::new()
        .with_tls_config(config.rustls_client_config()?)
        .https_or_http();
    if let Some(name) = &config.tls_server_name {
        let name = name.clone().try_into();
        let name = name.map_err(|error| Error::Service(Box::new(error)))?;
        tls = tls.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    let mut connector = TimeoutConnector::new(tls.enable_all_versions().wrap_connector(tcp));
    connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
    connector.set_read_timeout(Some(IDLE_TIMEOUT));
    connector.set_write_timeout(Some(IDLE_TIMEOUT));
    // Otherwise a connection's idle time would count against its next answer.
    connector.set_reset_reader_on_write(true);
    let http: legacy::Client<_, Body> = legacy::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .http2_keep_alive_interval(PING_INTERVAL)
        .http2_keep_alive_timeout(PING_TIMEOUT)
        .http2_keep_alive_while_idle(true)
        .http2_initial_stream_window_size(ANSWER_WINDOW_BYTES)
        .http2_initial_connection_window_size(WINDOW_BYTES)
        .build(connector);
    let service = ServiceBuilder::new()
        .option_layer(rate_limit)
        .layer(requests)
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(http);
    Ok(Client::new(service.boxed(), config.default_namespace))
}
