// kubelet for the end-to-end tests, unchanged but for where its cAdvisor looks for containerd.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	// The kubelet has no flag of its own for this; without it a containerd that listens elsewhere
	// is missing from /metrics/cadvisor.
	if socket := os.Getenv("CONTAINERD_ADDRESS"); socket != "" {
		if err := flag.Set("containerd", socket); err != nil {
			fmt.Fprintln(os.Stderr, "kubelet:", err)
			os.Exit(2)
		}
	}
	os.Exit(cli.Run(app.NewKubeletCommand(context.Background())))
}
