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
    for part in ["on sine:mean=200", "\n60% to 80%", "\n80% to 100%", "\n* "] {
        assert!(one.contains(part), "{part:?} is not in\n{one}");
    }
    let Ok(yaml) = tune_all(&arguments(&["-o", "yaml"])) else { panic!("it cannot be tuned") };
    assert!(yaml.starts_with("---\n") && yaml.contains("\nspec:"), "{yaml}");
}

#[test]
fn what_is_held_out_is_not_scored_in_the_search() {
    let arguments = arguments(&[]);
    let Ok((objects, _)) = arguments.input.objects() else { panic!("no objects") };
    let Ok(subjects) = arguments.input.subjects(&objects) else { panic!("no autoscaler") };
    let plan = Plan { length: podscale_core::Span::seconds(4000), ..subjects[0].plan.clone() };
    let (subject, space) = (&subjects[0], Space::default());
    let bench = Bench { arguments: &arguments, subject, plans: Vec::new(), space };
    let part = HeldOut { from: 0.75, to: 1.0 };
    let before = bench.part(&plan, Part::Before(part.from));
    let after = bench.part(&plan, Part::HeldOut(part));
    assert_eq!(before.length, podscale_core::Span::seconds(3000));
    assert_eq!((after.length, after.warm_up), (plan.length, before.length));
}

#[test]
fn parts_and_percents_are_read() {
    assert_eq!((percent("0.5%"), percent("100%")), (Ok(0.005), Ok(1.0)));
    for wrong in ["0.5", "101%", "-1%", "x%"] {
        assert!(percent(wrong).is_err(), "{wrong}");
    }
    assert!(share("0.05").is_err() && share("0.5").is_ok());
    assert!(parts("0").is_err() && parts("21").is_err() && parts("3").is_ok());
}
