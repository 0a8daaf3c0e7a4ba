//! All metrics of the program by name. Its values are visited, so that text for Prometheus and data
//! points for OpenTelemetry are made from the same numbers. (prometheus-client's registry can be written
//! as text only, or as protobuf whose generated types need a protobuf compiler in the build.)

use super::instruments::{Family, LabelSet, Metric};

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts how often values fell into buckets.
    Histogram,
    /// Always 1; what it says is in its labels.
    Info,
}

impl Kind {
    /// Its name in OpenMetrics text.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
            Kind::Info => "info",
        }
    }

    /// What follows a metric's name in the names of its samples.
    pub(crate) const fn suffix(self) -> &'static str {
        match self {
            Kind::Counter => "_total",
            Kind::Info => "_info",
            Kind::Gauge | Kind::Histogram => "",
        }
    }
}

/// What describes a metric.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Description {
    /// Its name, without a suffix.
    pub(crate) name: &'static str,
    /// What it means, in one sentence without a period.
    pub(crate) help: &'static str,
    /// Its type.
    pub(crate) kind: Kind,
}

/// One value of a metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value<'a> {
    /// A whole number.
    Whole(i64),
    /// A number that need not be whole.
    Float(f64),
    /// The buckets of a histogram.
    Buckets(Buckets<'a>),
}

/// How often values fell into which bucket.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Buckets<'a> {
    /// The upper bounds of all buckets but the last, which has none.
    pub(crate) bounds: &'a [f64],
    /// How many values each bucket holds, those of lower buckets not included.
    pub(crate) counts: &'a [u64],
    /// The sum of all values.
    pub(crate) sum: f64,
}

/// A name and a value.
pub(crate) type Label<'a> = (&'a str, &'a str);

/// Visits every value of every metric; those of one metric follow each other.
pub(crate) trait Visitor {
    /// A value of a metric with its labels.
    fn visit(&mut self, description: Description, labels: &[Label<'_>], value: Value<'_>);
}

/// Gives out the labels and values of one metric.
type Collect = Box<dyn Fn(&mut dyn FnMut(&[Label<'_>], Value<'_>)) + Send + Sync>;

/// All metrics, in the order in which they were registered.
#[derive(Default)]
pub(super) struct Registry(Vec<(Description, Collect)>);

impl Registry {
    /// A new metric without labels.
    pub(super) fn metric<M: Metric>(
        &mut self,
        name: &'static str,
        help: &'static str,
        metric: M,
    ) -> M {
        let read = metric.clone();
        let collect: Collect = Box::new(move |visit| read.read(&mut |value| visit(&[], value)));
        self.0.push((Description { name, help, kind: M::KIND }, collect));
        metric
    }

    /// A new metric with labels.
    pub(super) fn family<L: LabelSet, M: Metric>(
        &mut self,
        name: &'static str,
        help: &'static str,
        make: fn() -> M,
    ) -> Family<L, M> {
        let family = Family::new(make);
        let read = family.clone();
        self.0.push((
            Description { name, help, kind: M::KIND },
            Box::new(move |visit| read.read(visit)),
        ));
        family
    }

    /// A metric whose value is found out when it is visited, if there is one then.
    pub(super) fn computed(
        &mut self,
        description: Description,
        compute: impl Fn() -> Option<f64> + Send + Sync + 'static,
    ) {
        let collect: Collect = Box::new(move |visit| {
            if let Some(value) = compute() {
                visit(&[], Value::Float(value));
            }
        });
        self.0.push((description, collect));
    }

    /// A metric whose labels and values are found out when it is visited.
    pub(super) fn reported(
        &mut self,
        description: Description,
        report: impl Fn(&mut dyn FnMut(&[Label<'_>], Value<'_>)) + Send + Sync + 'static,
    ) {
        self.0.push((description, Box::new(report)));
    }

    /// A label of the program that never changes.
    pub(super) fn info(&mut self, name: &'static str, help: &'static str, label: Label<'static>) {
        let collect: Collect = Box::new(move |visit| visit(&[label], Value::Whole(1)));
        self.0.push((Description { name, help, kind: Kind::Info }, collect));
    }

    /// Visits every value.
    pub(super) fn visit(&self, visitor: &mut dyn Visitor) {
        for (description, collect) in &self.0 {
            collect(&mut |labels, value| visitor.visit(*description, labels, value));
        }
    }
}
