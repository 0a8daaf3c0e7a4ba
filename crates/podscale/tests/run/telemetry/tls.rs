//! A collector that is reached with TLS.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_may_want_tls_and_a_certificate() {
    let Some(program) = program() else { return };
    let (client, url) = serve().await;
    put_objects(&client).await;
    let (folder, port) = (Folder::new("tls"), free_port());
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let (certificate, key) = (folder.0.join("certificate.pem"), folder.0.join("key.pem"));
    std::fs::write(&certificate, made.cert.pem()).expect("written");
    std::fs::write(&key, made.signing_key.serialize_pem()).expect("written");
    let (certificate, key) = (certificate.display().to_string(), key.display().to_string());
    let tls = format!(
        "\n        tls: {{cert_file: {certificate}, key_file: {key}, client_ca_file: {certificate}}}"
    );
    let collector = Collector::start_with(&program, &folder, port, &tls);
    let endpoint = format!("https://localhost:{port}");
    let _replica = Replica::start_with(
        &folder.kubeconfig(&url),
        &["--otlp-endpoint", &endpoint],
        &[
            ("OTEL_EXPORTER_OTLP_CERTIFICATE", &certificate),
            ("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", &certificate),
            ("OTEL_EXPORTER_OTLP_CLIENT_KEY", &key),
            ("OTEL_TRACES_EXPORTER", "none"),
            ("OTEL_METRICS_EXPORTER", "none"),
        ],
    );
    until("log lines over TLS", async || !collector.logs().is_empty()).await;
    assert!(collector.spans().is_empty(), "spans were not asked for");
}
