use super::*;
use clap::Parser;

#[derive(Debug, Parser)]
struct Command {
    #[command(flatten)]
    arguments: Arguments,
}

fn arguments(flags: &[&str]) -> Arguments {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/web.yaml");
    let given =
        ["tune", "-f", docs, "--load", "sine:mean=200,amplitude=150,period=20m", "--length", "1h"];
    let few = ["--seeds", "1", "--samples", "2", "--rounds", "1"];
    let all = given.iter().chain(&few).chain(flags);
    Command::try_parse_from(all).expect("flags").arguments
}

#[test]
fn the_same_seed_gives_the_same_report_of_what_was_held_out() {
    let Ok(one) = tune_all(&arguments(&[])) else { panic!("it cannot be tuned") };
    let Ok(other) = tune_all(&arguments(&[])) else { panic!("it cannot be tuned") };
    assert_eq!(one, other);
    assert!(one.contains("on the first 60% of sine:mean=200"), "{one}");
    assert!(one.contains("\n* "), "something is recommended: {one}");
}

#[test]
fn what_is_held_out_is_not_scored_in_the_search() {
    let arguments = arguments(&["--train", "0.75"]);
    let Ok((objects, _)) = arguments.input.objects() else { panic!("no objects") };
    let Ok(subjects) = arguments.input.subjects(&objects) else { panic!("no autoscaler") };
    let plan = Plan { length: podscale_core::Span::seconds(4000), ..subjects[0].plan.clone() };
    let (subject, space) = (&subjects[0], Space::default());
    let bench = Bench { arguments: &arguments, subject, plans: Vec::new(), space };
    let (trained, held_out) = (bench.part(&plan, Part::Trained), bench.part(&plan, Part::HeldOut));
    assert_eq!(trained.length, podscale_core::Span::seconds(3000));
    assert_eq!((held_out.length, held_out.warm_up), (plan.length, trained.length));
}

#[test]
fn parts_and_percents_are_read() {
    assert_eq!((percent("0.5%"), percent("100%")), (Ok(0.005), Ok(1.0)));
    for wrong in ["0.5", "101%", "-1%", "x%"] {
        assert!(percent(wrong).is_err(), "{wrong}");
    }
    assert!(share("0.05").is_err() && share("0.5").is_ok());
}
