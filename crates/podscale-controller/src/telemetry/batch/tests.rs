use super::*;
use std::time::Duration;

const SETTINGS: BatchSettings =
    BatchSettings { queue_items: 5, batch_items: 3, delay: Duration::from_secs(10) };

#[tokio::test(start_paused = true)]
async fn items_wait_for_others_but_not_for_long() {
    let (queue, mut batches) = queue(SETTINGS);
    let (asking, mut finish) = watch::channel(false);
    let began = tokio::time::Instant::now();
    (1..=4).for_each(|item| queue.put(item));
    assert_eq!(batches.next(&mut finish).await, Some(vec![1, 2, 3]));
    assert_eq!(began.elapsed(), Duration::ZERO, "a full batch goes at once");
    assert_eq!(batches.next(&mut finish).await, Some(vec![4]));
    assert_eq!(began.elapsed(), SETTINGS.delay);
    queue.put(5);
    asking.send_replace(true);
    assert_eq!(batches.next(&mut finish).await, Some(vec![5]), "what is left goes at once");
    assert_eq!(began.elapsed(), SETTINGS.delay);
    assert_eq!(batches.next(&mut finish).await, None);
    queue.put(6);
    assert_eq!((batches.next(&mut finish).await, batches.overflow()), (None, 0));
}

#[tokio::test]
async fn a_full_queue_takes_no_more_and_counts() {
    let (queue, mut batches) = queue(SETTINGS);
    (1..=9).for_each(|item| queue.put(item));
    assert_eq!((batches.overflow(), batches.overflow()), (4, 0));
    let (_asking, mut finish) = watch::channel(false);
    assert_eq!(batches.next(&mut finish).await, Some(vec![1, 2, 3]));
}

#[test]
fn losses_are_counted_until_the_end_of_the_outage_is_logged() {
    let metrics = Metrics::new();
    let mut losses = Losses::new(Signal::Logs, "http://a".to_owned(), metrics.clone());
    let down = || Err(SendError::Unreachable("refused".to_owned()));
    losses.sent(5, 0, &Ok(Accepted::default()));
    assert_eq!(losses.lost, 0);
    losses.sent(5, 0, &down());
    losses.sent(5, 2, &down());
    assert_eq!(losses.lost, 12, "not logged before it goes on for a while");
    losses.sent(5, 0, &Ok(Accepted::default()));
    assert_eq!(losses.lost, 0, "the end is logged");
    losses.sent(5, 0, &Ok(Accepted { rejected: 1, message: "old".to_owned() }));
    assert_eq!(losses.lost, 1);
    let lost = "podscale_telemetry_lost_total{signal=\"logs\"} 13";
    assert!(metrics.text().contains(lost), "{}", metrics.text());
}
