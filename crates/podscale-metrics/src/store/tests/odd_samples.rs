//! Every odd sample that a kubelet may give, and what becomes of it.

use super::*;

#[test]
fn every_odd_sample_has_its_outcome() {
    type Step<'a> = (f64, &'a [Line], bool, &'a str);
    // What the kubelet says at which second, whether that is new, and what is known then.
    let cases: &[(&str, &[Step<'_>])] = &[
        (
            "two samples make a rate",
            &[
                (100.0, &[Line("web", "app", 0.0, 10.0, 5.0, 100.0)], true, "unknown"),
                (115.0, &[Line("web", "app", 0.0, 13.75, 5.0, 115.0)], true, "app 250m 15s"),
                (130.0, &[Line("web", "app", 0.0, 13.75, 5.0, 130.0)], true, "app 0m 15s"),
            ],
        ),
        (
            "the samples' own times count, not when they were read",
            &[
                (100.0, &[Line("web", "app", 0.0, 10.0, 5.0, 95.0)], true, "unknown"),
                (115.0, &[Line("web", "app", 0.0, 13.0, 5.0, 107.0)], true, "app 250m 12s"),
            ],
        ),
        (
            "a duplicate changes nothing",
            &[
                (100.0, &[Line("web", "app", 0.0, 10.0, 5.0, 100.0)], true, "unknown"),
                (115.0, &[Line("web", "app", 0.0, 13.0, 5.0, 115.0)], true, "app 200m 15s"),
                (130.0, &[Line("web", "app", 0.0, 19.0, 5.0, 115.0)], false, "app 200m 15s"),
            ],
        ),
        (
            "a stale sample changes nothing",
            &[
                (100.0, &[Line("web", "app", 0.0, 10.0, 5.0, 100.0)], true, "unknown"),
                (115.0, &[Line("web", "app", 0.0, 13.0, 5.0, 115.0)], true, "app 200m 15s"),
                (130.0, &[Line("web", "app", 0.0, 11.0, 5.0, 105.0)], false, "app 200m 15s"),
            ],
        ),
        (
            "the same sample is too old one day",
            &[
                (100.0, &[Line("web", "app", 0.0, 10.0, 5.0, 100.0)], true, "unknown"),
                (115.0, &[Line("web", "app", 0.0, 13.0, 5.0, 115.0)], true, "app 200m 15s"),
                (175.0, &[Line("web", "app", 0.0, 13.0, 5.0, 115.0)], false, "app 200m 15s"),
                (176.0, &[Line("web", "app", 0.0, 13.0, 5.0, 115.0)], false, "unknown"),
            ],
        ),
        (
            "a counter that fell begins anew",
            &[
                (100.0, &[Line("web", "app", 0.0, 10.0, 5.0, 100.0)], true, "unknown"),
                (115.0, &[Line("web", "app", 0.0, 9.0, 5.0, 115.0)], true, "unknown"),
                (130.0, &[Line("web", "app", 0.0, 12.0, 5.0, 130.0)], true, "app 200m 15s"),
            ],
        ),
        (
            "a restart needs a new pair",
            &[
                (100.0, &[Line("web", "app", 0.0, 10.0, 5.0, 100.0)], true, "unknown"),
                (115.0, &[Line("web", "app", 0.0, 13.0, 5.0, 115.0)], true, "app 200m 15s"),
                (130.0, &[Line("web", "app", 125.0, 20.0, 5.0, 130.0)], true, "unknown"),
                (145.0, &[Line("web", "app", 125.0, 23.0, 5.0, 145.0)], true, "app 200m 15s"),
            ],
        ),
        (
            "a restart 12 s ago is compared with zero at the start",
            &[
                (100.0, &[Line("web", "app", 0.0, 10.0, 5.0, 100.0)], true, "unknown"),
                (115.0, &[Line("web", "app", 103.0, 1.2, 5.0, 115.0)], true, "app 100m 12s"),
            ],
        ),
        (
            "seen once, 9 s old",
            &[(100.0, &[Line("web", "app", 91.0, 1.0, 5.0, 100.0)], true, "unknown")],
        ),
        (
            "seen once, 10 s old",
            &[(100.0, &[Line("web", "app", 90.0, 1.0, 5.0, 100.0)], true, "app 100m 10s")],
        ),
        (
            "seen once, 15 s old",
            &[(100.0, &[Line("web", "app", 85.0, 1.0, 5.0, 100.0)], true, "unknown")],
        ),
        (
            "a start that is not told once is the same",
            &[
                (100.0, &[Line("web", "app", 5.0, 10.0, 5.0, 100.0)], true, "unknown"),
                (115.0, &[Line("web", "app", NAN, 13.0, 5.0, 115.0)], true, "app 200m 15s"),
                (130.0, &[Line("web", "app", 5.0, 16.0, 5.0, 130.0)], true, "app 200m 15s"),
            ],
        ),
        (
            "a clock that is an hour behind does no harm",
            &[
                (4000.0, &[Line("web", "app", 0.0, 10.0, 5.0, 400.0)], true, "unknown"),
                (4015.0, &[Line("web", "app", 0.0, 13.0, 5.0, 415.0)], true, "app 200m 15s"),
            ],
        ),
        (
            "nor one that is half an hour ahead",
            &[
                (100.0, &[Line("web", "app", 0.0, 10.0, 5.0, 1900.0)], true, "unknown"),
                (115.0, &[Line("web", "app", 0.0, 13.0, 5.0, 1915.0)], true, "app 200m 15s"),
            ],
        ),
        (
            "a clock that is set forward begins anew",
            &[
                (100.0, &[Line("web", "app", 0.0, 10.0, 5.0, 100.0)], true, "unknown"),
                (115.0, &[Line("web", "app", 0.0, 13.0, 5.0, 615.0)], true, "unknown"),
                (130.0, &[Line("web", "app", 0.0, 16.0, 5.0, 630.0)], true, "app 200m 15s"),
            ],
        ),
        (
            "so does one that is set back",
            &[
                (1000.0, &[Line("web", "app", 0.0, 10.0, 5.0, 1000.0)], true, "unknown"),
                (1015.0, &[Line("web", "app", 0.0, 13.0, 5.0, 1015.0)], true, "app 200m 15s"),
                (1030.0, &[Line("web", "app", 0.0, 16.0, 5.0, 530.0)], true, "unknown"),
                (1045.0, &[Line("web", "app", 0.0, 19.0, 5.0, 545.0)], true, "app 200m 15s"),
            ],
        ),
        (
            "and one that is set back to a moment after the last sample",
            &[
                (100.0, &[Line("web", "app", 0.0, 10.0, 5.0, 100.0)], true, "unknown"),
                (160.0, &[Line("web", "app", 0.0, 22.0, 5.0, 110.0)], true, "unknown"),
            ],
        ),
        (
            "two hours ahead is a lie",
            &[
                (100.0, &[Line("web", "app", 0.0, 10.0, 5.0, 100.0)], true, "unknown"),
                (115.0, &[Line("web", "app", 0.0, 13.0, 5.0, 115.0)], true, "app 200m 15s"),
                (130.0, &[Line("web", "app", 0.0, 16.0, 5.0, 7330.0)], false, "app 200m 15s"),
                (145.0, &[Line("web", "app", 0.0, 19.0, 5.0, 145.0)], true, "app 200m 30s"),
            ],
        ),
        (
            "what is no number costs that sample only",
            &[
                (100.0, &[Line("web", "app", 0.0, 10.0, 5.0, 100.0)], true, "unknown"),
                (115.0, &[Line("web", "app", 0.0, 13.0, 5.0, 115.0)], true, "app 200m 15s"),
                (120.0, &[Line("web", "app", 0.0, NAN, 5.0, 120.0)], false, "app 200m 15s"),
                (121.0, &[Line("web", "app", 0.0, 14.0, NAN, 121.0)], false, "app 200m 15s"),
                (122.0, &[Line("web", "app", 0.0, -1.0, 5.0, 122.0)], false, "app 200m 15s"),
                (123.0, &[Line("web", "app", 0.0, 14.0, -5.0, 123.0)], false, "app 200m 15s"),
                (124.0, &[Line("web", "app", 0.0, 1e300, 5.0, 124.0)], false, "app 200m 15s"),
                (125.0, &[Line("web", "app", 0.0, 14.0, 1e30, 125.0)], false, "app 200m 15s"),
                (
                    126.0,
                    &[Line("web", "app", 0.0, f64::INFINITY, 5.0, 126.0)],
                    false,
                    "app 200m 15s",
                ),
                (130.0, &[Line("web", "app", 1e300, 16.0, 5.0, 130.0)], true, "app 200m 15s"),
            ],
        ),
        (
            "more cores than there are begin anew",
            &[
                (100.0, &[Line("web", "app", 0.0, 10.0, 5.0, 100.0)], true, "unknown"),
                (115.0, &[Line("web", "app", 0.0, 1e9, 5.0, 115.0)], true, "unknown"),
            ],
        ),
        (
            "nothing in memory is a container that has ended",
            &[
                (100.0, &[Line("web", "app", 0.0, 10.0, 5.0, 100.0)], true, "unknown"),
                (115.0, &[Line("web", "app", 0.0, 10.0, 0.0, 115.0)], true, "unknown"),
            ],
        ),
        (
            "a container that is unknown makes its pod unknown",
            &[
                (100.0, &[Line("web", "app", 0.0, 10.0, 5.0, 100.0)], true, "unknown"),
                (
                    115.0,
                    &[
                        Line("web", "app", 0.0, 13.0, 5.0, 115.0),
                        Line("web", "proxy", 0.0, 1.0, 5.0, 115.0),
                    ],
                    true,
                    "unknown",
                ),
                (
                    130.0,
                    &[
                        Line("web", "app", 0.0, 16.0, 5.0, 130.0),
                        Line("web", "proxy", 0.0, 2.5, 5.0, 130.0),
                    ],
                    true,
                    "app 200m 15s, proxy 100m 15s",
                ),
                (145.0, &[Line("web", "app", 0.0, 19.0, 5.0, 145.0)], true, "app 200m 15s"),
            ],
        ),
        (
            "a pod that is not mentioned is gone",
            &[
                (100.0, &[Line("web", "app", 0.0, 10.0, 5.0, 100.0)], true, "unknown"),
                (115.0, &[Line("web", "app", 0.0, 13.0, 5.0, 115.0)], true, "app 200m 15s"),
                (130.0, &[Line("api", "app", 0.0, 13.0, 5.0, 130.0)], true, "unknown"),
                (145.0, &[Line("web", "app", 0.0, 13.0, 5.0, 145.0)], true, "unknown"),
            ],
        ),
    ];
    for (name, steps) in cases {
        let store = store();
        for (second, lines, new, expected) in *steps {
            let applied = scrape(&store, "n1", *second, lines);
            let web = applied.pods.contains(&key("web"));
            let there = lines.iter().any(|line| line.0 == "web");
            assert_eq!(web, *new && there, "{name}, at {second}: is it new");
            assert_eq!(said(&store, "web", *second), *expected, "{name}, at {second}");
        }
    }
}
