use super::*;
use crate::kubelet::tests::fake::{Authority, Fake, Reply};
use crate::kubelet::tests::reader;
use crate::kubelet::{Scheme, Token};
use crate::store::Limits;
use jiff::Timestamp;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::mpsc;

/// What was observed: the node, and `new`, `known`, `back`, `failed` or `failing` with the error.
struct Events {
    coming: mpsc::UnboundedReceiver<(String, String)>,
    seen: Vec<(String, String)>,
}

struct Recorder(mpsc::UnboundedSender<(String, String)>);

impl Observer for Recorder {
    fn scraped(&self, node: &Arc<str>, scraped: &Scraped<'_>) {
        let words = match (scraped.outage, scraped.applied.news) {
            (Some(_), _) => "back".to_owned(),
            (None, true) => format!("new {}", scraped.applied.pods.len()),
            (None, false) => "known".to_owned(),
        };
        let _ = self.0.send((node.to_string(), words));
    }

    fn failed(&self, node: &Arc<str>, failed: &Failed<'_>) {
        let words = if failed.first { "failed" } else { "failing" };
        assert!(failed.target.to_string().starts_with("http"), "{}", failed.target);
        let _ = self.0.send((node.to_string(), format!("{words}: {}", failed.error)));
    }
}

fn scraper(authority: &Authority) -> (Scraper, Arc<Store>, Events) {
    let (sender, coming) = mpsc::unbounded_channel();
    let resolution = Duration::from_millis(20);
    let limits = Limits { resolution, max_age: Duration::from_secs(60) };
    let store = Arc::new(Store::new(limits));
    let timeout = Duration::from_millis(300);
    let config = Config {
        resolution,
        reader: reader(authority, Token::none(), timeout),
        store: Arc::clone(&store),
        clock: Arc::new(Timestamp::now),
        observer: Arc::new(Recorder(sender)),
    };
    (Scraper::start(config), store, Events { coming, seen: Vec::new() })
}

/// A kubelet whose one pod, of this name, uses more and more.
fn growing(pod: &'static str) -> impl Fn(&str, Option<&str>) -> Reply + Send + Sync + 'static {
    let count = AtomicU64::new(1);
    move |_, _| {
        let cpu = count.fetch_add(1, Ordering::SeqCst);
        let ms = Timestamp::now().as_millisecond();
        let labels = format!("{{container=\"app\",namespace=\"shop\",pod=\"{pod}\"}}");
        Reply::ok(format!(
            "container_cpu_usage_seconds_total{labels} {} {ms}\n\
             container_memory_working_set_bytes{labels} 5 {ms}\n",
            cpu as f64 / 1000.0
        ))
    }
}

impl Events {
    /// Waits until there were so many events of a node that begin with these words.
    async fn expect(&mut self, node: &str, words: &str, count: usize) {
        let end = Instant::now() + Duration::from_secs(30);
        let wanted = |(of, text): &&(String, String)| of == node && text.starts_with(words);
        while self.seen.iter().filter(wanted).count() < count {
            match tokio::time::timeout_at(end, self.coming.recv()).await {
                Ok(Some(event)) => self.seen.push(event),
                _ => panic!("{words:?} of {node} is missing; {:?}", self.seen),
            }
        }
    }
}

fn known(store: &Store, pod: &str) -> bool {
    store.pod(&("shop".into(), pod.into()), Timestamp::now()).is_some()
}

#[tokio::test]
async fn nodes_that_hang_lie_or_are_strangers_delay_nobody() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let (scraper, store, mut events) = scraper(&authority);
    let well = Fake::tls(&authority, "127.0.0.1", growing("web")).await;
    let hanging = Fake::tls(&authority, "127.0.0.1", |_, _| Reply::Hang).await;
    let dripping = Fake::tls(&authority, "127.0.0.1", |_, _| Reply::Drip).await;
    let strange = Fake::tls(&stranger, "127.0.0.1", growing("strange")).await;
    let lying = Fake::tls(&authority, "127.0.0.1", |_, _| Reply::ok("<html>")).await;
    for (node, kubelet) in
        [("h", &hanging), ("d", &dripping), ("s", &strange), ("l", &lying), ("w", &well)]
    {
        scraper.set(node, kubelet.target.clone());
    }
    assert_eq!(scraper.nodes(), 5);
    // Much sooner than the first of the others has run out of time.
    events.expect("w", "new 1", 5).await;
    assert!(known(&store, "web"));
    events.expect("h", "failed: no complete answer within 300ms", 1).await;
    events.expect("h", "failing: no complete answer", 1).await;
    events.expect("w", "new 1", 10).await;
    assert!(!known(&store, "strange"));
    scraper.remove("w");
    assert!(!known(&store, "web") && scraper.nodes() == 4);
    scraper.retain(|node| node == "l");
    assert_eq!(scraper.nodes(), 1);
}

#[tokio::test]
async fn an_outage_is_told_when_it_begins_and_when_it_ends() {
    let authority = Authority::new();
    let (scraper, store, mut events) = scraper(&authority);
    let broken = Arc::new(AtomicBool::new(false));
    let (switch, well) = (Arc::clone(&broken), growing("web"));
    let kubelet = Fake::tls(&authority, "127.0.0.1", move |path, token| {
        if switch.load(Ordering::SeqCst) {
            Reply::Answer(503, Vec::new())
        } else {
            well(path, token)
        }
    })
    .await;
    scraper.set("n", kubelet.target.clone());
    events.expect("n", "new", 2).await;
    broken.store(true, Ordering::SeqCst);
    events.expect("n", "failed: answered 503", 1).await;
    events.expect("n", "failing: answered 503", 2).await;
    assert!(known(&store, "web"), "what is known stays");
    broken.store(false, Ordering::SeqCst);
    events.expect("n", "back", 1).await;
    events.expect("n", "new", 3).await;
    let first = events.seen.iter().filter(|(_, text)| text.starts_with("failed")).count();
    assert_eq!(first, 1, "{:?}", events.seen);
}

#[tokio::test]
async fn a_node_that_changes_its_address_is_found_there() {
    let authority = Authority::new();
    let (scraper, store, mut events) = scraper(&authority);
    let nowhere = Target { scheme: Scheme::Https, host: "127.0.0.1".into(), port: 1 };
    scraper.set("n", nowhere);
    events.expect("n", "failed: cannot be reached", 1).await;
    let here = Fake::tls(&authority, "127.0.0.1", growing("web")).await;
    scraper.set("n", here.target.clone());
    events.expect("n", "back", 1).await;
    events.expect("n", "new 1", 3).await;
    assert!(known(&store, "web"));
}
