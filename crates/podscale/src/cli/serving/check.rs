//! Which flags about serving make sense together, and beside others.

use super::{Arguments, Failure};
use crate::cli::pipeline;
use podscale_controller::settings::MetricsApi;

impl Arguments {
    /// Whether the flags make sense together.
    ///
    /// # Errors
    /// Says what does not.
    pub fn check(&self, pipeline: &pipeline::Arguments) -> Result<(), Failure> {
        self.check_sources(pipeline, false)
    }

    /// As [`Arguments::check`]; external metrics may also be those of triggers.
    fn check_sources(&self, pipeline: &pipeline::Arguments, triggers: bool) -> Result<(), Failure> {
        let known = pipeline.has_prometheus();
        if self.wants(MetricsApi::Custom) && !known {
            return Err(Failure::NoSource("custom"));
        }
        let elsewhere = triggers || !self.routes()?.is_empty();
        if !elsewhere && self.wants(MetricsApi::External) && !known {
            return Err(Failure::NoSource("external"));
        }
        let (flag, needs) = ("--plain-address", "resource in --serve");
        let effect = self.plain_address.is_none() || self.wants(MetricsApi::Resource);
        if effect { Ok(()) } else { Err(Failure::NoEffect { flag, needs }) }
    }

    /// Whether the flags make sense beside a controller, which serves metrics or not, may write or not, and has triggers
    /// that HPAs read or not.
    ///
    /// # Errors
    /// Says what does not.
    pub fn check_beside(
        &self,
        pipeline: &pipeline::Arguments,
        serves: bool,
        dry_run: bool,
        triggers: bool,
    ) -> Result<(), Failure> {
        if dry_run && (serves || self.serves_besides_metrics()) && self.tls_cert_file.is_none() {
            return Err(Failure::DryRun);
        }
        // Without an answer the HPAs of triggers would hold every size.
        if triggers && !(serves && self.wants(MetricsApi::External)) {
            let (flag, needs) = ("--trigger-mode hpa", "--serve-metrics --serve external");
            return Err(Failure::NoEffect { flag, needs });
        }
        if serves {
            return self.check_sources(pipeline, triggers);
        }
        let given = [
            ("--serve", !self.serve.is_empty()),
            ("--plain-address", self.plain_address.is_some()),
            ("--external-metrics-routes", self.external_metrics_routes.is_some()),
        ];
        match given.iter().find(|(_, given)| *given) {
            Some((flag, _)) => Err(Failure::NoEffect { flag, needs: "--serve-metrics" }),
            None => Ok(()),
        }
    }

    /// Whether it is said which custom and external metrics there are, as far as they are served.
    ///
    /// # Errors
    /// It is not.
    pub fn check_rules(&self, pipeline: &pipeline::Arguments) -> Result<(), Failure> {
        // Rules may also follow from the autoscalers of singlecloud's API.
        if pipeline.has_rules() || self.singlecloud.is_given() {
            return Ok(());
        }
        let routed = !self.routes()?.is_empty();
        match (self.wants(MetricsApi::Custom), self.wants(MetricsApi::External) && !routed) {
            (true, _) => Err(Failure::NoRules("custom")),
            (false, true) => Err(Failure::NoRules("external")),
            (false, false) => Ok(()),
        }
    }

    /// Whether the flags make sense without a controller, where the admission webhook may be all that is served.
    ///
    /// # Errors
    /// Says what does not.
    pub fn check_alone(&self, pipeline: &pipeline::Arguments) -> Result<(), Failure> {
        self.check(pipeline)?;
        if self.serves_only_webhook() && self.plain_address.is_some() {
            let (flag, needs) = ("--plain-address", "resource in --serve");
            return Err(Failure::NoEffect { flag, needs });
        }
        Ok(())
    }
}
