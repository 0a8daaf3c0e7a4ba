//! `metrics.k8s.io` from the real Prometheus, by `resourceRules`: no kubelet is scraped.

use super::load::Load;
use super::{GOOD, all_follow, write_rules};
use crate::fixture::Workspace;
use crate::plane::ControlPlane;
use crate::serve;
use anyhow::{Context, Result, ensure};

const RULES: &str = r#"
resourceRules:
  cpu:
    containerQuery: sum(shop_cores{<<.LabelMatchers>>}) by (<<.GroupBy>>)
    nodeQuery: sum(shop_node_cores{<<.LabelMatchers>>}) by (<<.GroupBy>>)
    resources: {template: <<.Resource>>}
    containerLabel: container
  memory:
    containerQuery: sum(shop_bytes{<<.LabelMatchers>>}) by (<<.GroupBy>>)
    nodeQuery: sum(shop_node_bytes{<<.LabelMatchers>>}) by (<<.GroupBy>>)
    resources: {template: <<.Resource>>}
    containerLabel: container
  window: 1m
"#;

/// Serves everything from Prometheus, where the APIServices lead to, and upstream's controller goes on.
pub(super) async fn upstream_scales(
    plane: &ControlPlane,
    space: &Workspace,
    load: &Load,
    port: u16,
    flags: &[&str],
) -> Result<()> {
    write_rules(plane, &format!("{}{RULES}", GOOD.trim_end())).await?;
    let all: Vec<&str> = flags.iter().copied().chain(["--resource-metrics=prometheus"]).collect();
    let mut program = serve::serve(plane, "serve-by-rules", port, &all).await?;
    let scenario = async {
        for replicas in [4, 2] {
            all_follow(space, load, replicas).await?;
        }
        // Twice as much as the kubelet of this node would say.
        for (arguments, parts) in [
            (
                &["top", "nodes", "--no-headers"][..],
                &["node-1", "2000m", "50%", "1024Mi", "12%"][..],
            ),
            (&["top", "pods", "--namespace=shop", "--no-headers"], &["cpu-", "45m", "64Mi"]),
        ] {
            let what = format!("kubectl {arguments:?}");
            space
                .until(&what, &Ok(()), async || {
                    let (ok, text) = serve::kubectl(plane, arguments)?;
                    let right = ok && parts.iter().all(|part| text.contains(part));
                    Ok(if right { Ok(()) } else { Err(text) })
                })
                .await?;
        }
        Ok(())
    };
    let ended: Result<()> = scenario.await;
    ended.with_context(|| format!("podscale serve:\n{}", program.log_tail()))?;
    let scraped = program.log().contains("scraping kubelets");
    ensure!(!scraped, "kubelets are scraped:\n{}", program.log_tail());
    let status = program.terminate().await?;
    ensure!(status.success(), "podscale serve ended with {status}");
    Ok(())
}
