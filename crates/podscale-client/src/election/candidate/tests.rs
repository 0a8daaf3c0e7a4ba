use super::*;

const TIMINGS: LeaseTimings = LeaseTimings {
    lease: Duration::from_secs(15),
    renew: Duration::from_secs(10),
    retry: Duration::from_secs(2),
};

fn lease(holder: &str, transitions: i32, version: &str) -> Stored {
    let wall = Some(Timestamp::UNIX_EPOCH);
    let holder = holder.to_owned();
    let record = Record { holder, seconds: 15, acquired: wall, renewed: wall, transitions };
    Stored { record, version: version.to_owned() }
}

/// What happens to the candidate `me`.
enum Happens {
    /// The lease is seen with this holder, these transitions and version; absent without a holder.
    Seen(Option<(&'static str, i32, &'static str)>),
    /// What was to be written was stored under this version.
    Stored(&'static str),
    /// A call failed because of somebody else's write.
    Stale,
    /// A call failed.
    Lost,
    /// It was stopped, and resigned.
    Resigns,
    /// Nothing.
    Nothing,
}
use Happens::{Lost, Nothing, Resigns, Seen, Stale};

fn describe(step: &Step) -> String {
    match step {
        Step::Read => "read".to_owned(),
        Step::Write(record, version) => {
            let version = version.as_deref().unwrap_or("new");
            format!("write {} #{} on {version}", record.holder, record.transitions)
        }
        Step::Resign => "resign".to_owned(),
        Step::Wait(time) => format!("wait {}", time.as_millis()),
    }
}

fn check(what: &str, steps: &[(u64, Happens, &str)]) {
    let mut candidate = Candidate::new("me".to_owned(), TIMINGS, 0.0);
    let mut writing = None;
    for (millis, happens, expected) in steps {
        let now = Duration::from_millis(*millis);
        match happens {
            Seen(seen) => candidate.see(seen.map(|(h, t, v)| lease(h, t, v)), now),
            Happens::Stored(version) => {
                let record = writing.take().expect("something to write");
                candidate.wrote(Stored { record, version: (*version).to_owned() }, now, now);
            }
            Stale => candidate.failed(true, now),
            Lost => candidate.failed(false, now),
            Resigns => candidate.resigned(now),
            Nothing => {}
        }
        let step = candidate.next(now, Timestamp::UNIX_EPOCH);
        assert_eq!(describe(&step), *expected, "{what}, at {millis} ms");
        if let Step::Write(record, _) = step {
            writing = Some(record);
        }
    }
}

#[test]
fn gets_keeps_and_loses_the_lease() {
    use Happens::Stored;
    check(
        "there is no lease",
        &[
            (0, Nothing, "read"),
            (5, Seen(None), "write me #0 on new"),
            (2010, Stored("1"), "wait 2000"),
            (4010, Nothing, "write me #0 on 1"),
            (4020, Stored("2"), "wait 2000"),
        ],
    );
    check(
        "another leads, then its lease ends without a change",
        &[
            (0, Seen(Some(("you", 3, "7"))), "wait 2000"),
            (2000, Nothing, "read"),
            (2010, Seen(Some(("you", 3, "7"))), "wait 2000"),
            (14_500, Nothing, "read"),
            (14_500, Seen(Some(("you", 3, "7"))), "wait 501"),
            (15_001, Nothing, "write me #4 on 7"),
            (15_002, Stored("8"), "wait 2000"),
        ],
    );
    check(
        "another leads and renews in time",
        &[
            (0, Seen(Some(("you", 3, "7"))), "wait 2000"),
            (14_000, Seen(Some(("you", 4, "8"))), "wait 2000"),
            (15_500, Nothing, "wait 500"),
            (29_000, Seen(Some(("you", 4, "8"))), "wait 1"),
            (29_001, Nothing, "write me #5 on 8"),
        ],
    );
    check(
        "the leader gives it up: no waiting",
        &[
            (0, Seen(Some(("you", 3, "7"))), "wait 2000"),
            (500, Seen(Some(("", 3, "8"))), "write me #4 on 8"),
            (510, Stale, "wait 2000"),
            (600, Seen(Some(("third", 4, "9"))), "wait 2000"),
        ],
    );
    check(
        "a lease of its own name is taken up again",
        &[(0, Seen(Some(("me", 3, "7"))), "wait 2000"), (2000, Nothing, "write me #3 on 7")],
    );
    check(
        "nobody answers the leader",
        &[
            (0, Seen(Some(("", 3, "7"))), "write me #4 on 7"),
            (0, Stored("8"), "wait 2000"),
            (2000, Nothing, "write me #4 on 8"),
            (4000, Lost, "wait 2000"),
            (6000, Nothing, "write me #4 on 8"),
            (9500, Lost, "wait 500"),
            (10_000, Nothing, "resign"),
            (10_001, Resigns, "wait 2000"),
            (12_001, Nothing, "write me #4 on 8"),
        ],
    );
    check(
        "the leader's write meets another's",
        &[
            (0, Seen(Some(("", 3, "7"))), "write me #4 on 7"),
            (0, Stored("8"), "wait 2000"),
            (2000, Nothing, "write me #4 on 8"),
            (2001, Stale, "wait 500"),
            (2501, Nothing, "read"),
            (2502, Seen(Some(("you", 5, "9"))), "resign"),
            (2503, Resigns, "wait 2000"),
        ],
    );
    check(
        "late news of a watch do not count",
        &[
            (0, Seen(Some(("", 3, "7"))), "write me #4 on 7"),
            (1, Stored("8"), "wait 2000"),
            (2, Seen(Some(("", 3, "7"))), "wait 1999"),
        ],
    );
}

#[test]
fn gives_up_only_what_it_has() {
    let mut candidate = Candidate::new("me".to_owned(), TIMINGS, 0.0);
    assert_eq!(candidate.release(Timestamp::UNIX_EPOCH), None);
    candidate.see(Some(lease("you", 1, "5")), Duration::ZERO);
    assert_eq!(candidate.release(Timestamp::UNIX_EPOCH), None);
    candidate.see(Some(lease("me", 1, "6")), Duration::ZERO);
    let (record, version) = candidate.release(Timestamp::UNIX_EPOCH).expect("it is held");
    assert_eq!((record.holder.as_str(), record.seconds, record.transitions), ("", 1, 1));
    assert_eq!(version, "6");
}

#[test]
fn terms_must_fit_each_other() {
    let timings = |lease, renew, retry| {
        let millis = Duration::from_millis;
        LeaseTimings { lease: millis(lease), renew: millis(renew), retry: millis(retry) }.check()
    };
    assert_eq!(TIMINGS.check(), Ok(()));
    assert_eq!(timings(10_000, 10_000, 2000), Err(LeaseTimingsError::Lease));
    assert_eq!(timings(15_000, 10_000, 9000), Err(LeaseTimingsError::Renew));
    assert_eq!(timings(900, 800, 100), Err(LeaseTimingsError::Short));
}
