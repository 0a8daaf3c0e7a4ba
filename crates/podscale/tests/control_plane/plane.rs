//! A control plane of real parts: etcd, kube-apiserver and kube-controller-manager on loopback.

use super::binaries;
use super::certificates::{Authority, write_account_keys};
use super::process::{Process, free_ports};
use anyhow::{Context, Result, ensure};
use axum::http::Request;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::{Api, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Cluster addresses where there is a node; the first of them is the API server's.
const NODE_SERVICES: &str = "10.213.0.0/24";

const ADMIN_TOKEN: &str = "podscale-test-admin";

/// Who scales: nobody of the control plane, or kube-controller-manager's own controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Autoscaler {
    Off,
    On,
    /// It, and none of the other controllers.
    Only,
}

/// A running control plane. Its folder holds keys, data, logs and kubeconfigs.
pub struct ControlPlane {
    programs: PathBuf,
    folder: PathBuf,
    etcd: String,
    port: u16,
    /// Whether there is a real node, which runs real pods.
    node: bool,
    /// Signs for everybody who serves here.
    pub authority: Authority,
    /// The administrator's client.
    pub client: Client,
    /// The administrator's kubeconfig.
    pub kubeconfig: PathBuf,
    // Ended in this order: nobody misses a program that is gone.
    manager: Mutex<Option<Process>>,
    /// Reaches kube-controller-manager itself.
    manager_client: Mutex<Option<Client>>,
    server: Mutex<Option<Process>>,
    _etcd: Process,
}

impl ControlPlane {
    /// Starts etcd and kube-apiserver.
    pub async fn start(folder: &Path) -> Result<ControlPlane> {
        ControlPlane::start_at(folder, &["127.0.0.1", "localhost"], false).await
    }

    /// Starts them for a real node. Pods reach the API server at more addresses than this machine's own.
    #[allow(dead_code, reason = "benchmarks have no node")]
    pub async fn start_for_node(folder: &Path, address: &str) -> Result<ControlPlane> {
        ControlPlane::start_at(folder, &["127.0.0.1", "localhost", address], true).await
    }

    async fn start_at(folder: &Path, hosts: &[&str], node: bool) -> Result<ControlPlane> {
        let programs = binaries::folder()?;
        std::fs::create_dir_all(folder)?;
        let authority = Authority::new()?;
        std::fs::write(folder.join("ca.crt"), &authority.pem)?;
        authority.sign("kube-apiserver", hosts)?.write(folder, "server")?;
        authority.sign("front-proxy", &[])?.write(folder, "front-proxy")?;
        let group = Some("system:masters");
        authority.sign_for("kubelet-client", group, &[])?.write(folder, "kubelet-client")?;
        write_account_keys(folder)?;
        let tokens = format!("{ADMIN_TOKEN},admin,admin,\"system:masters\"\n");
        std::fs::write(folder.join("tokens.csv"), tokens)?;

        let [client, peer, port] = free_ports()?;
        let (etcd, peer) =
            (format!("http://127.0.0.1:{client}"), format!("http://127.0.0.1:{peer}"));
        let data = folder.join("etcd");
        let arguments = [
            "--name=test".to_owned(),
            format!("--data-dir={}", data.display()),
            "--unsafe-no-fsync".to_owned(),
            "--log-level=warn".to_owned(),
            format!("--listen-client-urls={etcd}"),
            format!("--advertise-client-urls={etcd}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster=test={peer}"),
        ];
        let etcd_process = Process::start("etcd", &programs.join("etcd"), arguments, folder)?;
        let admin = json!({"token": ADMIN_TOKEN});
        let kubeconfig = write_kubeconfig(folder, "admin", port, &authority.pem, &admin)?;
        let plane = ControlPlane {
            client: client_of(&kubeconfig).await?,
            programs,
            folder: folder.to_owned(),
            etcd,
            port,
            node,
            authority,
            kubeconfig,
            manager: Mutex::default(),
            manager_client: Mutex::default(),
            server: Mutex::default(),
            _etcd: etcd_process,
        };
        plane.start_server().await?;
        Ok(plane)
    }

    /// Where everything of this control plane is kept.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Starts kube-apiserver, on the same port every time, and waits until it is ready.
    pub async fn start_server(&self) -> Result<()> {
        self.start_server_with(&[]).await
    }

    /// Starts kube-apiserver like [`ControlPlane::start_server`], with more flags.
    pub async fn start_server_with(&self, flags: &[&str]) -> Result<()> {
        let flags = flags.iter().map(|flag| (*flag).to_owned());
        let arguments = self.server_flags().into_iter().chain(flags);
        let program = self.programs.join("kube-apiserver");
        let mut process = Process::start("kube-apiserver", &program, arguments, &self.folder)?;
        let ready = async || match Request::get("/readyz").body(Vec::new()) {
            Ok(request) => self.client.request_text(request).await.is_ok_and(|text| text == "ok"),
            Err(_) => false,
        };
        process.until_ready(ready).await?;
        *self.server.lock() = Some(process);
        Ok(())
    }

    fn server_flags(&self) -> Vec<String> {
        let folder = self.folder.display();
        let mut flags = vec![
            format!("--etcd-servers={}", self.etcd),
            "--bind-address=127.0.0.1".to_owned(),
            "--advertise-address=127.0.0.1".to_owned(),
            format!("--secure-port={}", self.port),
            "--endpoint-reconciler-type=none".to_owned(),
            format!("--tls-cert-file={folder}/server.crt"),
            format!("--tls-private-key-file={folder}/server.key"),
            format!("--client-ca-file={folder}/ca.crt"),
            format!("--token-auth-file={folder}/tokens.csv"),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--service-account-key-file={folder}/service-account.pub"),
            format!("--service-account-signing-key-file={folder}/service-account.key"),
            format!("--requestheader-client-ca-file={folder}/ca.crt"),
            "--requestheader-allowed-names=front-proxy".to_owned(),
            "--requestheader-username-headers=X-Remote-User".to_owned(),
            "--requestheader-group-headers=X-Remote-Group".to_owned(),
            "--requestheader-extra-headers-prefix=X-Remote-Extra-".to_owned(),
            format!("--proxy-client-cert-file={folder}/front-proxy.crt"),
            format!("--proxy-client-key-file={folder}/front-proxy.key"),
        ];
        if self.node {
            // Aggregated servers are asked at the addresses of their pods: there is no kube-proxy.
            flags.extend([
                format!("--service-cluster-ip-range={NODE_SERVICES}"),
                "--authorization-mode=Node,RBAC".to_owned(),
                "--enable-admission-plugins=NodeRestriction".to_owned(),
                "--kubelet-preferred-address-types=InternalIP".to_owned(),
                format!("--kubelet-certificate-authority={folder}/ca.crt"),
                format!("--kubelet-client-certificate={folder}/kubelet-client.crt"),
                format!("--kubelet-client-key={folder}/kubelet-client.key"),
                "--enable-aggregator-routing".to_owned(),
            ]);
        } else {
            // ServiceAccount admission would hold every pod back until a controller has made accounts.
            flags.extend([
                "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
                "--authorization-mode=RBAC".to_owned(),
                "--disable-admission-plugins=ServiceAccount".to_owned(),
            ]);
        }
        flags
    }

    /// Makes etcd forget everything that happened before now.
    pub async fn compact(&self) -> Result<()> {
        let revision = self.ask_etcd("/v3/kv/range", json!({"key": "AA=="})).await?;
        let revision = &revision["header"]["revision"];
        ensure!(revision.is_string(), "etcd does not tell its revision");
        let body = json!({"revision": revision, "physical": true});
        self.ask_etcd("/v3/kv/compaction", body).await?;
        Ok(())
    }

    /// Speaks to etcd in JSON.
    pub fn etcd(&self) -> Result<Client> {
        Ok(Client::try_from(Config::new(self.etcd.parse()?))?)
    }

    async fn ask_etcd(&self, path: &str, body: Value) -> Result<Value> {
        let request = Request::post(path).body(body.to_string().into_bytes())?;
        Ok(self.etcd()?.request(request).await?)
    }

    /// Kills kube-apiserver without asking it.
    pub fn kill_server(&self) {
        drop(self.server.lock().take());
    }

    /// Starts kube-controller-manager, in place of one that may be running. With its autoscaler each
    /// controller has an account of its own, so that its rights can be changed.
    pub async fn start_manager(&self, autoscaler: Autoscaler, flags: &[&str]) -> Result<()> {
        self.stop_manager();
        let [port] = free_ports()?;
        let (folder, kubeconfig) = (self.folder.display(), self.kubeconfig.display());
        let (controllers, accounts) = match autoscaler {
            Autoscaler::Off => ("*,-horizontal-pod-autoscaler-controller", false),
            Autoscaler::On => ("*", true),
            Autoscaler::Only => ("horizontal-pod-autoscaler-controller", false),
        };
        let mut arguments = vec![
            format!("--kubeconfig={kubeconfig}"),
            "--leader-elect=false".to_owned(),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={port}"),
            format!("--controllers={controllers}"),
            format!("--use-service-account-credentials={accounts}"),
            format!("--service-account-private-key-file={folder}/service-account.key"),
            format!("--root-ca-file={folder}/ca.crt"),
            format!("--authentication-kubeconfig={kubeconfig}"),
            format!("--authorization-kubeconfig={kubeconfig}"),
            format!("--tls-cert-file={folder}/server.crt"),
            format!("--tls-private-key-file={folder}/server.key"),
            "--kube-api-qps=500".to_owned(),
            "--kube-api-burst=1000".to_owned(),
        ];
        arguments.extend(flags.iter().map(|flag| (*flag).to_owned()));
        let program = self.programs.join("kube-controller-manager");
        let process = Process::start("kube-controller-manager", &program, arguments, &self.folder)?;
        *self.manager.lock() = Some(process);
        *self.manager_client.lock() = Some(client_of(&self.kubeconfig_at("manager", port)?).await?);
        Ok(())
    }

    /// The metrics of kube-controller-manager.
    pub async fn manager_metrics(&self) -> Result<String> {
        let client = self.manager_client.lock().clone();
        let client = client.context("kube-controller-manager was never started")?;
        Ok(client.request_text(Request::get("/metrics").body(Vec::new())?).await?)
    }

    /// The end of kube-controller-manager's log.
    pub fn manager_log_tail(&self) -> String {
        self.manager.lock().as_ref().map(Process::log_tail).unwrap_or_default()
    }

    /// Sends kube-controller-manager a signal by name.
    pub fn signal_manager(&self, name: &str) -> Result<()> {
        let manager = self.manager.lock();
        manager.as_ref().context("kube-controller-manager does not run")?.signal(name)
    }

    /// Ends kube-controller-manager.
    pub fn stop_manager(&self) {
        drop(self.manager.lock().take());
    }

    /// The process of kube-controller-manager, while it runs.
    #[allow(dead_code, reason = "a benchmark uses it")]
    pub fn manager_id(&self) -> Option<u32> {
        self.manager.lock().as_ref().map(Process::id)
    }

    /// The process of kube-apiserver, while it runs.
    #[allow(dead_code, reason = "a benchmark uses it")]
    pub fn server_id(&self) -> Option<u32> {
        self.server.lock().as_ref().map(Process::id)
    }

    /// A kubeconfig of a service account.
    pub async fn kubeconfig_of(&self, namespace: &str, account: &str) -> Result<PathBuf> {
        let token = json!({"token": self.token_of(namespace, account).await?});
        let name = format!("{namespace}-{account}");
        write_kubeconfig(&self.folder, &name, self.port, &self.authority.pem, &token)
    }

    /// A kubeconfig of whoever's token is in a file.
    pub fn kubeconfig_with(&self, name: &str, token: &Path) -> Result<PathBuf> {
        let token = json!({"tokenFile": token});
        write_kubeconfig(&self.folder, name, self.port, &self.authority.pem, &token)
    }

    /// A kubeconfig for what listens on another port in the place of the API server.
    pub fn kubeconfig_at(&self, name: &str, port: u16) -> Result<PathBuf> {
        let token = json!({"token": ADMIN_TOKEN});
        write_kubeconfig(&self.folder, name, port, &self.authority.pem, &token)
    }

    /// A kubeconfig of whoever has a certificate, `NAME.crt` with its key in the folder.
    #[allow(dead_code, reason = "benchmarks have no node")]
    pub fn kubeconfig_signed(&self, name: &str) -> Result<PathBuf> {
        let file = |kind: &str| self.folder.join(format!("{name}.{kind}"));
        let user = json!({"client-certificate": file("crt"), "client-key": file("key")});
        write_kubeconfig(&self.folder, name, self.port, &self.authority.pem, &user)
    }

    /// Where kube-apiserver listens.
    #[allow(dead_code, reason = "benchmarks have no node")]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// A token of a service account.
    pub async fn token_of(&self, namespace: &str, account: &str) -> Result<String> {
        let accounts = Api::<ServiceAccount>::namespaced(self.client.clone(), namespace);
        let asked = TokenRequest {
            spec: Some(TokenRequestSpec {
                expiration_seconds: Some(3600),
                ..TokenRequestSpec::default()
            }),
            ..TokenRequest::default()
        };
        let params = PostParams::default();
        let given = accounts.create_token_request(account, &params, &asked).await?;
        given.status.and_then(|status| status.token).context("no token was given")
    }
}

fn write_kubeconfig(
    folder: &Path,
    name: &str,
    port: u16,
    authority: &str,
    user: &Value,
) -> Result<PathBuf> {
    use base64::Engine;
    let authority = base64::engine::general_purpose::STANDARD.encode(authority);
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "test",
        "clusters": [{"name": "test", "cluster": {"server": format!("https://127.0.0.1:{port}"),
            "certificate-authority-data": authority}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": name}}],
        "users": [{"name": name, "user": user}],
    });
    let path = folder.join(format!("{name}.kubeconfig"));
    std::fs::write(&path, config.to_string())?;
    Ok(path)
}

async fn client_of(kubeconfig: &Path) -> Result<Client> {
    let config = Kubeconfig::read_from(kubeconfig)?;
    let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}
