use super::*;
use clap::Parser;

#[derive(Debug, Parser)]
struct Command {
    #[command(flatten)]
    arguments: Arguments,
}

fn arguments(flags: &[&str]) -> Arguments {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/web.yaml");
    arguments_of(docs, flags)
}

fn arguments_of(file: &str, flags: &[&str]) -> Arguments {
    let given =
        ["tune", "-f", file, "--load", "sine:mean=200,amplitude=150,period=20m", "--length", "1h"];
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
    let Ok((objects, _)) = arguments.common.input.objects() else { panic!("no objects") };
    let Ok(subjects) = arguments.common.input.subjects(&objects) else { panic!("no autoscaler") };
    let plan = Plan { length: Span::seconds(4000), ..subjects[0].plan.clone() };
    let (subject, space) = (&subjects[0], Space::default());
    let Ok(pool) = workers(&arguments.common.input) else { panic!("no threads") };
    let bench = Bench { arguments: &arguments, subject, plans: Vec::new(), space, pool: &pool };
    let part = HeldOut { from: 0.75, to: 1.0 };
    let before = bench.part(&plan, Part::Before(part.from));
    let after = bench.part(&plan, Part::HeldOut(part));
    assert_eq!(before.length, Span::seconds(3000));
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

fn failure(arguments: &Arguments) -> String {
    match tune_all(arguments) {
        Err(Failure::Usage(text) | Failure::Cannot(text)) => text,
        Ok(text) => panic!("it was tuned:\n{text}"),
    }
}

#[test]
fn a_chpa_is_tuned_and_one_without_targets_is_refused() {
    let chpa = |name: &str, metrics: &str| {
        let file =
            std::env::temp_dir().join(format!("podscale-tune-{name}-{}.yaml", std::process::id()));
        let text = format!(
            "apiVersion: autoscalers.postmates.com/v1beta1\nkind: CHPA\nmetadata: {{name: web}}\nspec:\n  \
             minReplicas: 2\n  maxReplicas: 20\n  scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, \
             name: web}}\n  metrics: {metrics}\n"
        );
        std::fs::write(&file, text).expect("a file");
        file
    };
    let cpu = "[{type: Resource, resource: {name: cpu, targetAverageUtilization: 10}}]";
    let file = chpa("cpu", cpu);
    let tuned = tune_all(&arguments_of(file.to_str().expect("UTF-8"), &[]));
    std::fs::remove_file(file).expect("it is there");
    let Ok(text) = tuned else { panic!("it cannot be tuned: {tuned:?}") };
    assert!(text.contains("metrics[0].resource.targetAverageUtilization="), "{text}");
    let file = chpa("none", "[]");
    let text = failure(&arguments_of(file.to_str().expect("UTF-8"), &[]));
    std::fs::remove_file(file).expect("it is there");
    assert!(
        text.ends_with("web: there is nothing to tune: no metric of it has a target"),
        "{text}"
    );
}

#[test]
fn a_warm_up_that_leaves_nothing_to_choose_by_is_refused() {
    let text = failure(&arguments(&["--warm-up", "40m"]));
    assert!(
        text.contains("its first 60%, which is 36m") && text.contains("a larger --train"),
        "{text}"
    );
}

#[test]
fn wrong_numbers_are_explained() {
    let file = ["tune", "-f", "x", "--load", "constant:1"];
    for (flags, expected) in [
        (["--weight", "-2"], "not a number of at least 0"),
        (["--samples", "1000000"], "1000000 is not in 0..=10000"),
        (["--rounds", "5000"], "5000 is not in 0..=1000"),
    ] {
        let error = Command::try_parse_from(file.iter().chain(&flags)).expect_err("wrong");
        let text = error.to_string();
        assert!(text.contains(expected), "{flags:?}: {text}");
    }
}
