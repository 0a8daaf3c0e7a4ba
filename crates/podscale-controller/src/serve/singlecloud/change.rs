//! Creates, changes and deletes autoscalers together with the rules that their metrics need: all of it, or
//! nothing.
//!
//! Rules go first, so that a metric is there when the autoscaler asks for it. If the autoscaler cannot be
//! written then, the rules are taken back.

use super::answer::Failure;
use super::native;
use super::{Autoscalers, Rules};
use podscale_api::hpa::v2::{CrossVersionObjectReference, HorizontalPodAutoscaler};
use podscale_api::singlecloud::{
    Alias, Autoscaler, TARGET_UID, aliases, from_hpa, to_hpa, update_hpa,
};
use podscale_client::call::CallError;
use podscale_metrics::rules::alias::rule_set;

/// How often a change is made on a newer version of the autoscaler, whose status changes often.
const MAX_ATTEMPTS: u32 = 8;
/// Why an autoscaler cannot have metrics by name and labels.
const NO_RULES: &str = "custom metrics are not available: nothing serves them (--serve=custom with \
     --prometheus-url, or --singlecloud-adapter)";

impl Autoscalers {
    /// All autoscalers of a namespace.
    pub(super) async fn list(&self, namespace: &str) -> Result<Vec<Autoscaler>, Failure> {
        let all = native::list(&self.0.client, namespace).await;
        let all = all.map_err(|error| Failure::server(format!("list hpas failed {error}")))?;
        Ok(all.iter().map(from_hpa).collect())
    }

    /// One autoscaler.
    pub(super) async fn get(&self, namespace: &str, name: &str) -> Result<Autoscaler, Failure> {
        let hpa = native::get(&self.0.client, namespace, name).await;
        hpa.map(|hpa| from_hpa(&hpa)).map_err(|error| Failure::reading(name, &error))
    }

    /// Stores a new autoscaler.
    pub(super) async fn create(
        &self,
        namespace: &str,
        autoscaler: &Autoscaler,
    ) -> Result<Autoscaler, Failure> {
        let name = &autoscaler.name;
        let refused = |why: &dyn std::fmt::Display| Failure::refused("create", name, why);
        let mut hpa = to_hpa(autoscaler, namespace)
            .map_err(|invalid| Failure::refused_field("create", name, &invalid))?;
        let new = aliases(&hpa);
        self.check_rules(&hpa).map_err(|why| refused(&why))?;
        let _alone = self.0.changing.lock().await;
        let others = native::list(&self.0.client, namespace).await.map_err(|e| refused(&e))?;
        check_free(&hpa, &others, true).map_err(|why| refused(&why))?;
        self.mark(&mut hpa).await.map_err(|error| refused(&error))?;
        self.apply(&[], &new).await.map_err(|why| refused(&why))?;
        match self.stored(native::create(&self.0.client, &hpa).await, &hpa).await {
            Ok(stored) => Ok(from_hpa(&stored)),
            Err(error) => {
                self.roll_back(&[], &new).await;
                let exists = error.is_already_exists();
                Err(if exists { Failure::duplicate(name) } else { refused(&error) })
            }
        }
    }

    /// Changes a stored autoscaler.
    pub(super) async fn update(
        &self,
        namespace: &str,
        autoscaler: &Autoscaler,
    ) -> Result<Autoscaler, Failure> {
        let name = &autoscaler.name;
        let refused = |why: &dyn std::fmt::Display| Failure::refused("update", name, why);
        let _alone = self.0.changing.lock().await;
        let mut rules: Option<(Vec<Alias>, Vec<Alias>)> = None;
        let mut attempts = 0;
        let failure = loop {
            attempts += 1;
            let stored = match native::get(&self.0.client, namespace, name).await {
                Ok(stored) => stored,
                Err(error) if error.is_not_found() => break Failure::reading(name, &error),
                Err(error) => break refused(&error),
            };
            let hpa = match self.changed(&stored, autoscaler).await {
                Ok(hpa) => hpa,
                Err(failure) => break failure,
            };
            let (old, new) = (aliases(&stored), aliases(&hpa));
            match &rules {
                None => {
                    self.apply(&old, &new).await.map_err(|why| refused(&why))?;
                    rules = Some((old, new));
                }
                Some((before, _)) if *before != old => {
                    break refused(&"somebody else changes its metrics at the same time");
                }
                Some(_) => {}
            }
            let written = native::replace(&self.0.client, &hpa).await;
            match self.stored(written, &hpa).await {
                Ok(stored) => return Ok(from_hpa(&stored)),
                Err(error) if error.is_conflict() && attempts < MAX_ATTEMPTS => {}
                Err(error) => break refused(&error),
            }
        };
        if let Some((old, new)) = rules {
            self.roll_back(&old, &new).await;
        }
        Err(failure)
    }

    /// What a stored autoscaler becomes, if that is possible.
    async fn changed(
        &self,
        stored: &HorizontalPodAutoscaler,
        autoscaler: &Autoscaler,
    ) -> Result<HorizontalPodAutoscaler, Failure> {
        let name = &autoscaler.name;
        let refused = |why: &dyn std::fmt::Display| Failure::refused("update", name, why);
        let mut hpa = update_hpa(stored, autoscaler)
            .map_err(|invalid| Failure::refused_field("update", name, &invalid))?;
        self.check_rules(&hpa).map_err(|why| refused(&why))?;
        if hpa.spec.scale_target_ref != stored.spec.scale_target_ref {
            let others = native::list(&self.0.client, &hpa.metadata.namespace).await;
            check_free(&hpa, &others.map_err(|error| refused(&error))?, false)
                .map_err(|why| refused(&why))?;
            self.mark(&mut hpa).await.map_err(|error| refused(&error))?;
        }
        Ok(hpa)
    }

    /// Deletes an autoscaler and its rules.
    pub(super) async fn delete(&self, namespace: &str, name: &str) -> Result<(), Failure> {
        let _alone = self.0.changing.lock().await;
        let stored = native::get(&self.0.client, namespace, name).await;
        let stored = stored.map_err(|error| Failure::reading(name, &error))?;
        self.remove(&stored).await
    }

    /// As [`Autoscalers::delete`], unless another autoscaler has the name by now.
    pub(super) async fn delete_object(
        &self,
        namespace: &str,
        name: &str,
        uid: &str,
    ) -> Result<(), Failure> {
        let _alone = self.0.changing.lock().await;
        match native::get(&self.0.client, namespace, name).await {
            Ok(stored) if stored.metadata.uid == uid => self.remove(&stored).await,
            Ok(_) => Ok(()),
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(Failure::reading(name, &error)),
        }
    }

    async fn remove(&self, stored: &HorizontalPodAutoscaler) -> Result<(), Failure> {
        let (old, name) = (aliases(stored), &stored.metadata.name);
        let failed = |why: &dyn std::fmt::Display| {
            Failure::server(format!("delete hpa {name} failed {why}"))
        };
        self.apply(&old, &[]).await.map_err(|why| failed(&why))?;
        if let Err(error) = native::delete(&self.0.client, stored).await {
            self.roll_back(&old, &[]).await;
            return Err(failed(&error));
        }
        Ok(())
    }

    /// Takes the rules of autoscalers that are gone out of the adapter's configuration.
    pub(super) async fn release(&self, released: &[Alias]) -> Result<(), Failure> {
        let _alone = self.0.changing.lock().await;
        let mut unused = Vec::new();
        for alias in released {
            let Alias { namespace, autoscaler, .. } = alias;
            match native::get(&self.0.client, namespace, autoscaler).await {
                // It is there again, or somebody changed their mind.
                Ok(hpa) if aliases(&hpa).contains(alias) => {}
                Ok(_) => unused.push(alias.clone()),
                Err(error) if error.is_not_found() => unused.push(alias.clone()),
                Err(error) => return Err(Failure::reading(autoscaler, &error)),
            }
        }
        self.apply(&unused, &[]).await.map_err(Failure::server)
    }

    /// Whether the metrics of an autoscaler can be answered for.
    fn check_rules(&self, hpa: &HorizontalPodAutoscaler) -> Result<(), String> {
        let wanted = aliases(hpa);
        match &self.0.rules {
            _ if wanted.is_empty() => Ok(()),
            Rules::None => Err(NO_RULES.to_owned()),
            Rules::Served(_) | Rules::Adapter(_) => {
                let parsed = rule_set(&wanted).map_err(|error| error.to_string());
                parsed.map(|_| ())
            }
        }
    }

    /// Says on an autoscaler which object its workload is; nothing if there is none yet.
    async fn mark(&self, hpa: &mut HorizontalPodAutoscaler) -> Result<(), CallError> {
        let target = &hpa.spec.scale_target_ref;
        let resource = format!("{}s", target.kind.to_ascii_lowercase());
        let found =
            native::workload(&self.0.client, &resource, &hpa.metadata.namespace, &target.name);
        match found.await? {
            Some(workload) => hpa.metadata.annotations.insert(TARGET_UID, workload.metadata.uid),
            None => drop(hpa.metadata.annotations.remove(TARGET_UID)),
        }
        Ok(())
    }

    async fn apply(&self, old: &[Alias], new: &[Alias]) -> Result<(), String> {
        match &self.0.adapter {
            Some(adapter) => adapter.apply(old, new).await.map_err(|error| error.to_string()),
            None => Ok(()),
        }
    }

    async fn roll_back(&self, old: &[Alias], new: &[Alias]) {
        if let Some(adapter) = &self.0.adapter {
            adapter.roll_back(old, new).await;
        }
    }

    /// Whether something was stored, even if its answer did not come.
    async fn stored(
        &self,
        answer: Result<HorizontalPodAutoscaler, CallError>,
        hpa: &HorizontalPodAutoscaler,
    ) -> Result<HorizontalPodAutoscaler, CallError> {
        let error = match answer {
            Err(error) if error.code().is_none_or(|code| code >= 500) => error,
            answer => return answer,
        };
        let meta = &hpa.metadata;
        match native::get(&self.0.client, &meta.namespace, &meta.name).await {
            Ok(stored) if stored.spec == hpa.spec => Ok(stored),
            _ => Err(error),
        }
    }
}

/// Whether the target, and the name of a new autoscaler, are still free.
fn check_free(
    hpa: &HorizontalPodAutoscaler,
    others: &[HorizontalPodAutoscaler],
    is_new: bool,
) -> Result<(), String> {
    let (name, target) = (&hpa.metadata.name, &hpa.spec.scale_target_ref);
    let taken = others.iter().any(|other| {
        let same_name = other.metadata.name == *name;
        same_name && is_new || !same_name && same(&other.spec.scale_target_ref, target)
    });
    if !taken {
        return Ok(());
    }
    let CrossVersionObjectReference { kind, name: workload, .. } = target;
    Err(format!("duplicate horizontalpodautoscaler {name} for {kind}/{workload}"))
}

/// Whether two references are to the same workload, however they write its kind.
fn same(one: &CrossVersionObjectReference, other: &CrossVersionObjectReference) -> bool {
    one.kind.eq_ignore_ascii_case(&other.kind) && one.name == other.name
}
