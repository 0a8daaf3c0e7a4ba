use super::*;
use clap::Parser;

#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    serving: Arguments,
}

#[test]
fn who_asks_for_something_else_does_not_get_metrics_too() {
    let apis = [MetricsApi::Resource, MetricsApi::Custom, MetricsApi::External];
    for (flags, metrics, only_webhook) in [
        (&[][..], &[MetricsApi::Resource][..], false),
        (&["--webhook"], &[MetricsApi::Resource], true),
        (&["--webhook", "--serve", "custom"], &[MetricsApi::Custom], false),
        (&["--singlecloud-port", "6444"], &[], false),
    ] {
        let all = ["podscale"].iter().chain(flags);
        let Flags { serving } = Flags::try_parse_from(all).expect("flags");
        let wanted: Vec<MetricsApi> = apis.into_iter().filter(|api| serving.wants(*api)).collect();
        assert_eq!(wanted, metrics, "{flags:?}");
        assert_eq!(serving.serves_only_webhook(), only_webhook, "{flags:?}");
        let webhook = flags.contains(&"--webhook");
        assert_eq!(serving.served_without_metrics().webhook, webhook, "{flags:?}");
    }
}
