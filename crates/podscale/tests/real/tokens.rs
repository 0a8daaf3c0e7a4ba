//! A server of tokens, as OAuth 2.0 has it, in place of those that cannot be had here.

use axum::Router;
use axum::http::{HeaderMap, StatusCode, Uri};
use serde_json::json;

/// Starts one, which gives the token that it makes of who asks, on which path and with which form; nobody else gets any.
pub(crate) async fn server_of_tokens(
    token: impl Fn(&str, &str, &str) -> Option<String> + Clone + Send + Sync + 'static,
) -> String {
    let router = Router::new().fallback(async move |headers: HeaderMap, uri: Uri, body: String| {
        let who = headers.get("authorization").and_then(|value| value.to_str().ok());
        match token(who.unwrap_or_default(), uri.path(), &body) {
            Some(token) => {
                let answer =
                    json!({"access_token": token, "token_type": "Bearer", "expires_in": 3600});
                (StatusCode::OK, answer.to_string())
            }
            None => (StatusCode::UNAUTHORIZED, json!({"error": "invalid_client"}).to_string()),
        }
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}
