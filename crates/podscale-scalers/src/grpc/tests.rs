//! A server that answers calls as a table says, and what the client makes of it.

use super::*;
use axum::Router;
use axum::body::Body as AxumBody;
use axum::extract::State;
use axum::response::Response;
use parking_lot::Mutex;
use std::collections::HashMap;

/// What a server answers, by method: messages, then a status with a text.
pub(crate) type Script = Arc<Mutex<HashMap<&'static str, (Vec<Bytes>, &'static str)>>>;

/// A message as servers write it.
pub(crate) fn answer(message: &impl Message) -> Bytes {
    framed(message)
}

/// Starts a server; it notes in `asked` what it is asked, with the first bytes of the message's text.
pub(crate) async fn serve(script: Script, asked: Arc<Mutex<Vec<String>>>) -> String {
    async fn reply(
        State((script, asked)): State<(Script, Arc<Mutex<Vec<String>>>)>,
        request: axum::extract::Request,
    ) -> Response {
        let method = request.uri().path().trim_start_matches('/').to_owned();
        let token = request.headers().get("token").and_then(|value| value.to_str().ok());
        let note = token.map(|token| format!("{method} as {token}"));
        asked.lock().push(note.unwrap_or_else(|| method.clone()));
        let (messages, status) = script.lock().get(&*method).cloned().unwrap_or_default();
        let (code, text) = status.split_once(' ').unwrap_or((status, ""));
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", HeaderValue::from_str(code).expect("a code"));
        trailers.insert("grpc-message", HeaderValue::from_str(text).expect("a text"));
        let body = Full::new(Bytes::from(messages.concat()));
        let body = body.with_trailers(async move { Some(Ok(trailers)) });
        let mut response = Response::new(AxumBody::new(body));
        let grpc = HeaderValue::from_static("application/grpc");
        response.headers_mut().insert(CONTENT_TYPE, grpc);
        response
    }
    let router = Router::new().fallback(reply).with_state((script, asked));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

#[derive(Clone, PartialEq, Message)]
struct Number {
    #[prost(int64, tag = "1")]
    number: i64,
}

#[tokio::test]
async fn statuses_say_what_answers_are() {
    let (script, asked) = (Script::default(), Arc::default());
    let address = serve(script.clone(), asked).await;
    let grpc = Grpc::new(&Target { authority: &address, tls: None, name: "" }).expect("a client");
    let server: Arc<str> = "s".into();
    let seven = answer(&Number { number: 7 });
    for (messages, status, expected) in [
        (vec![seven.clone()], "0", "7"),
        (vec![answer(&Number::default())], "0", "0"),
        (vec![], "0", "s answers a.B/C with nothing"),
        (vec![], "5 not%20here", "s gives no value: not here (gRPC 5)"),
        (vec![], "16 who", "s refuses the credentials: who"),
        (vec![], "7 no", "s refuses the credentials: no"),
        (vec![], "14 away", "s cannot be reached: away"),
        (vec![], "4", "s did not answer in time"),
        (
            vec![Bytes::from_static(&[1, 0, 0, 0, 0])],
            "0",
            "s answers with a message that is compressed or too long",
        ),
    ] {
        script.lock().insert("a.B/C", (messages, status));
        let (question, none) = (Number::default(), HeaderMap::new());
        let found = match grpc.call::<Number>(&server, "a.B/C", &question, &none).await {
            Ok(answer) => answer.number.to_string(),
            Err(error) => error.to_string(),
        };
        assert_eq!(found, expected, "{status}");
    }
}

#[tokio::test]
async fn answers_come_one_after_another() {
    let (script, asked) = (Script::default(), Arc::default());
    let address = serve(script.clone(), asked).await;
    let grpc = Grpc::new(&Target { authority: &address, tls: None, name: "" }).expect("a client");
    let two = vec![answer(&Number { number: 1 }), answer(&Number { number: 2 })];
    for (questions, status, last) in [
        (Questions::One, "0", "end"),
        (Questions::Many, "0", "end"),
        (Questions::Many, "14 gone", "s cannot be reached: gone"),
    ] {
        script.lock().insert("a.B/C", (two.clone(), status));
        let none = HeaderMap::new();
        let (server, question): (Arc<str>, _) = ("s".into(), Number::default());
        let answers = grpc.listen(&server, "a.B/C", &question, &none, questions).await;
        let mut answers = answers.unwrap_or_else(|error| panic!("{error}"));
        let mut found = Vec::new();
        loop {
            match answers.next::<Number>().await {
                Ok(Some(answer)) => found.push(answer.number.to_string()),
                Ok(None) => break found.push("end".to_owned()),
                Err(error) => break found.push(error.to_string()),
            }
        }
        assert_eq!(found, ["1", "2", last]);
    }
}
