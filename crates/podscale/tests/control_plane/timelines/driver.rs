//! Makes the changes of a timeline in its namespace of one cluster, and keeps the pods of workloads at
//! their sizes.

use super::super::fixture::api;
use super::backend::{Gadget, Namespace};
use super::change::Change;
use super::cluster::Cluster;
use super::workload::{FINALIZER, Kind, Life, Pod, Target};
use anyhow::Result;
use futures::future::join_all;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// A namespace of one cluster.
pub struct Driver<'a> {
    pub cluster: &'a Cluster,
    pub namespace: String,
    /// The workloads that exist.
    targets: BTreeMap<String, Target>,
    /// The sizes that their statuses show.
    reported: Mutex<BTreeMap<String, i32>>,
}

const HPA: (&str, &str) = ("autoscaling/v2", "HorizontalPodAutoscaler");

impl<'a> Driver<'a> {
    /// Makes the namespace.
    pub async fn new(cluster: &'a Cluster, namespace: &str) -> Result<Driver<'a>> {
        let object: DynamicObject = serde_json::from_value(json!({"apiVersion": "v1",
            "kind": "Namespace", "metadata": {"name": namespace}}))?;
        let namespaces = api(&cluster.plane.client, None, "v1", "Namespace");
        namespaces.create(&PostParams::default(), &object).await?;
        Ok(Driver {
            cluster,
            namespace: namespace.to_owned(),
            targets: BTreeMap::new(),
            reported: Mutex::default(),
        })
    }

    /// Leaves nothing behind for the controller to do.
    pub async fn close(&self) {
        let (delete, all) = (DeleteParams::default(), ListParams::default());
        // What cannot be deleted only costs the controllers some time.
        let _ = self.api(HPA.0, HPA.1).delete_collection(&delete, &all).await;
        self.cluster.backend.forget(&self.namespace);
    }

    pub fn api(&self, version: &str, kind: &str) -> Api<DynamicObject> {
        api(&self.cluster.plane.client, Some(&self.namespace), version, kind)
    }

    fn with<T>(&self, act: impl FnOnce(&mut Namespace) -> T) -> T {
        self.cluster.backend.with(&self.namespace, act)
    }

    /// Makes a change; says how that went, which must be the same in both clusters.
    pub async fn apply(&mut self, change: &Change) -> String {
        match self.try_apply(change).await {
            Ok(outcome) => outcome.to_owned(),
            Err(kube::Error::Api(status)) => format!("{} {}", status.code, status.message),
            Err(error) => error.to_string(),
        }
    }

    async fn try_apply(&mut self, change: &Change) -> kube::Result<&'static str> {
        match change {
            Change::CreateTarget(target) => self.create_target(target).await?,
            Change::DeleteTarget { target, with_pods } => {
                self.delete_target(target, *with_pods).await?;
            }
            Change::Scale { target, replicas } => self.scale(target, *replicas).await?,
            Change::LoseSize(target) => self.patch_size(target, &json!(null)).await?,
            Change::Selector { target, selector } => self.select(target, selector.clone()).await?,
            Change::AnswerGet { gadget, answer } => {
                self.gadget(gadget, |gadget| gadget.answer_get.clone_from(answer));
            }
            Change::AnswerPut { gadget, answer } => {
                self.gadget(gadget, |gadget| gadget.answer_put.clone_from(answer));
            }
            Change::CreateAutoscaler(object) => self.create(HPA, object.clone()).await?,
            Change::EditAutoscaler { name, patch } => {
                let (hpas, patch) = (self.api(HPA.0, HPA.1), Patch::Merge(patch));
                hpas.patch(name, &PatchParams::default(), &patch).await?;
            }
            Change::DeleteAutoscaler(name) => {
                self.api(HPA.0, HPA.1).delete(name, &DeleteParams::default()).await?;
            }
            Change::Pod { .. }
            | Change::Relabel { .. }
            | Change::Orphan(_)
            | Change::DeletePod(_)
            | Change::Terminate(_) => return self.change_pod(change).await,
            Change::Stray { pod, like } => {
                self.create_pod(pod, Pod { owner: None, ..like.pod() }).await?;
            }
            Change::Usage { app, metric, samples } => self.with(|here| {
                here.usage.insert((app.clone(), metric.clone()), samples.clone());
            }),
            Change::Object { object, metric, amount } => self.with(|here| {
                let key = (object.clone(), metric.clone());
                set(&mut here.objects, key, amount.clone());
            }),
            Change::External { metric, amounts } => self.with(|here| {
                set(&mut here.external, metric.clone(), amounts.clone());
            }),
            Change::Fault { api, fault } => {
                self.with(|here| set(&mut here.faults, *api, fault.clone()));
            }
        }
        Ok("done")
    }

    async fn create(&self, (version, kind): (&str, &str), object: Value) -> kube::Result<()> {
        let object: DynamicObject =
            serde_json::from_value(object).map_err(kube::Error::SerdeError)?;
        self.api(version, kind).create(&PostParams::default(), &object).await?;
        Ok(())
    }

    async fn create_target(&mut self, target: &Target) -> kube::Result<()> {
        let kind = (target.kind.version(), target.kind.name());
        match target.manifest() {
            Some(manifest) => self.create(kind, manifest).await?,
            None => self.with(|here| {
                let gadget = Gadget {
                    replicas: target.replicas,
                    selector: Some(target.selector_text()),
                    ..Gadget::default()
                };
                here.gadgets.insert(target.name.clone(), gadget);
            }),
        }
        if target.kind == Kind::Widget {
            self.select(target, Some(target.selector_text())).await?;
        }
        self.targets.insert(target.name.clone(), target.clone());
        self.reported.lock().remove(&target.name);
        Ok(())
    }

    async fn delete_target(&mut self, target: &Target, with_pods: bool) -> kube::Result<()> {
        match target.kind {
            Kind::Gadget => self.with(|here| drop(here.gadgets.remove(&target.name))),
            kind => {
                let orphan = DeleteParams::background();
                self.api(kind.version(), kind.name()).delete(&target.name, &orphan).await?;
            }
        }
        self.targets.remove(&target.name);
        if with_pods {
            for name in self.owned(&target.name) {
                self.delete_pod(&name).await?;
            }
        }
        Ok(())
    }

    async fn scale(&self, target: &Target, replicas: i32) -> kube::Result<()> {
        if target.kind == Kind::Gadget {
            self.gadget(&target.name, |gadget| gadget.replicas = replicas);
            return Ok(());
        }
        self.patch_size(target, &json!(replicas)).await
    }

    async fn patch_size(&self, target: &Target, replicas: &Value) -> kube::Result<()> {
        let patch = json!({"spec": {"replicas": replicas}});
        let (api, params) =
            (self.api(target.kind.version(), target.kind.name()), PatchParams::default());
        api.patch(&target.name, &params, &Patch::Merge(&patch)).await?;
        Ok(())
    }

    async fn select(&self, target: &Target, selector: Option<String>) -> kube::Result<()> {
        if target.kind == Kind::Gadget {
            self.gadget(&target.name, |gadget| gadget.selector = selector);
            return Ok(());
        }
        let patch = json!({"status": {"selector": selector}});
        self.patch_status(target, &patch).await
    }

    async fn patch_status(&self, target: &Target, patch: &Value) -> kube::Result<()> {
        let (api, params) =
            (self.api(target.kind.version(), target.kind.name()), PatchParams::default());
        api.patch_status(&target.name, &params, &Patch::Merge(patch)).await?;
        Ok(())
    }

    fn gadget(&self, name: &str, act: impl FnOnce(&mut Gadget)) {
        self.with(|here| here.gadgets.get_mut(name).map(act));
    }

    fn pods(&self) -> Api<DynamicObject> {
        self.api("v1", "Pod")
    }

    async fn change_pod(&self, change: &Change) -> kube::Result<&'static str> {
        let (Change::Pod { pod: name, .. }
        | Change::Relabel { pod: name, .. }
        | Change::Orphan(name)
        | Change::DeletePod(name)
        | Change::Terminate(name)) = change
        else {
            return Ok("no change of a pod");
        };
        let params = PatchParams::default();
        let mut pod = match self.with(|here| here.pods.get(name).cloned()) {
            Some(pod) if !pod.terminating => pod,
            _ => return Ok("there is no such pod"),
        };
        match change {
            Change::Pod { life, .. } => {
                self.set_life(name, *life).await?;
                pod.life = *life;
            }
            Change::Relabel { label, value, .. } => {
                let patch = json!({"metadata": {"labels": {label: value}}});
                self.pods().patch(name, &params, &Patch::Merge(&patch)).await?;
                pod.owner = None;
                set(&mut pod.labels, label.clone(), value.clone());
            }
            Change::Orphan(_) => pod.owner = None,
            Change::Terminate(_) => {
                let patch = json!({"metadata": {"finalizers": [FINALIZER]}});
                self.pods().patch(name, &params, &Patch::Merge(&patch)).await?;
                self.pods().delete(name, &DeleteParams::default()).await?;
                pod.terminating = true;
            }
            _ => {
                self.delete_pod(name).await?;
                return Ok("done");
            }
        }
        self.with(|here| here.pods.insert(name.clone(), pod));
        Ok("done")
    }

    async fn set_life(&self, name: &str, life: Life) -> kube::Result<()> {
        let patch = json!({"status": life.status()});
        self.pods().patch_status(name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
        Ok(())
    }

    async fn create_pod(&self, name: &str, pod: Pod) -> kube::Result<()> {
        self.create(("v1", "Pod"), pod.manifest(name)).await?;
        self.set_life(name, pod.life).await?;
        self.with(|here| here.pods.insert(name.to_owned(), pod));
        Ok(())
    }

    async fn delete_pod(&self, name: &str) -> kube::Result<()> {
        self.pods().delete(name, &DeleteParams::default()).await?;
        self.with(|here| here.pods.remove(name));
        Ok(())
    }

    /// The pods that a workload counts, in order.
    fn owned(&self, target: &str) -> Vec<String> {
        let counts = |pod: &Pod| {
            pod.owner.as_deref() == Some(target) && pod.life.is_active() && !pod.terminating
        };
        self.with(|here| {
            here.pods.iter().filter(|(_, pod)| counts(pod)).map(|(name, _)| name.clone()).collect()
        })
    }

    /// The sizes that workloads have been given.
    pub async fn sizes(&self) -> Result<BTreeMap<String, i64>> {
        let mut sizes = BTreeMap::new();
        let lists = Kind::STORED.map(async |kind| {
            self.api(kind.version(), kind.name()).list(&ListParams::default()).await
        });
        for list in join_all(lists).await {
            for object in list? {
                let replicas = object.data["spec"]["replicas"].as_i64().unwrap_or_default();
                sizes.insert(object.metadata.name.unwrap_or_default(), replicas);
            }
        }
        self.with(|here| {
            let gadgets = here.gadgets.iter();
            sizes.extend(gadgets.map(|(name, gadget)| (name.clone(), i64::from(gadget.replicas))));
        });
        Ok(sizes)
    }

    /// Makes and deletes pods as the controllers of all workloads would, except of some.
    pub async fn sync_workloads(&self, except: &BTreeSet<String>) -> Result<()> {
        let sizes = self.sizes().await?;
        let targets = self.targets.values().filter(|target| !except.contains(&target.name));
        let synced = targets.filter_map(|target| Some((target, *sizes.get(&target.name)?)));
        let all = join_all(synced.map(|(target, size)| self.sync_workload(target, size))).await;
        all.into_iter().collect()
    }

    async fn sync_workload(&self, target: &Target, size: i64) -> Result<()> {
        let size = usize::try_from(size).unwrap_or_default();
        let owned = self.owned(&target.name);
        let surplus = owned.iter().rev().take(owned.len().saturating_sub(size));
        let taken = self.with(|here| here.pods.keys().cloned().collect::<Vec<String>>());
        let names = (0..).map(|number| format!("{}-{number}", target.name));
        let fresh = names.filter(|name| !taken.contains(name));
        let fresh: Vec<String> = fresh.take(size.saturating_sub(owned.len())).collect();
        let made = join_all(fresh.iter().map(|name| self.create_pod(name, target.pod()))).await;
        made.into_iter().collect::<kube::Result<Vec<()>>>()?;
        let gone = join_all(surplus.map(|name| self.delete_pod(name))).await;
        gone.into_iter().collect::<kube::Result<Vec<()>>>()?;
        let replicas = i32::try_from(size).unwrap_or(i32::MAX);
        if self.reported.lock().insert(target.name.clone(), replicas) == Some(replicas) {
            return Ok(());
        }
        match target.kind {
            Kind::Gadget => self.gadget(&target.name, |gadget| gadget.status_replicas = replicas),
            _ => self.patch_status(target, &json!({"status": {"replicas": replicas}})).await?,
        }
        Ok(())
    }
}

fn set<K: Ord, V>(map: &mut BTreeMap<K, V>, key: K, value: Option<V>) {
    match value {
        Some(value) => drop(map.insert(key, value)),
        None => drop(map.remove(&key)),
    }
}
