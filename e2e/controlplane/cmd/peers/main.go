// peers changes workloads on an API server at random, plays the kubelet for their pods, and checks
// that the controllers and the scheduler that run beside it bring everything where it belongs. It
// speaks protobuf, as they do.
//
// usage: peers --kubeconfig FILE [--seed N] [--duration 2m]
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/kubectl/pkg/util/openapi"
)

// How long controllers may take until nothing moves any more.
const settleTime = 90 * time.Second

func main() {
	kubeconfig := flag.String("kubeconfig", "", "how to reach the server")
	seed := flag.Int64("seed", 1, "makes the same changes in the same order")
	duration := flag.Duration("duration", 2*time.Minute, "for how long to go on")
	flag.Parse()
	if *kubeconfig == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(*kubeconfig, *seed, *duration); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func run(kubeconfig string, seed int64, duration time.Duration) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if err := checkSchemas(client); err != nil {
		return err
	}
	if err := addNodes(ctx, client); err != nil {
		return err
	}
	go runPods(ctx, client)
	w := &world{
		client: client, random: rand.New(rand.NewSource(seed)), served: served(client),
		deployments: map[string]*deployment{}, sets: map[string]*statefulSet{},
		events: map[types.UID]string{},
	}
	if err := w.addNamespace(ctx); err != nil {
		return err
	}
	end := time.Now().Add(duration)
	for round := 1; time.Now().Before(end); round++ {
		for range 1 + w.random.Intn(6) {
			what, err := w.change(ctx)
			if err != nil {
				return fmt.Errorf("round %d: %s: %w", round, what, err)
			}
			w.changes++
			time.Sleep(time.Duration(w.random.Intn(700)) * time.Millisecond)
		}
		if err := w.settle(ctx); err != nil {
			return fmt.Errorf("round %d, after %q: %w", round, w.recent, err)
		}
		if err := w.noteEvents(ctx); err != nil {
			return err
		}
		w.rounds++
	}
	if err := w.checkEvents(); err != nil {
		return err
	}
	fmt.Printf("peers: %d changes, settled %d times, %d events\n", w.changes, w.rounds, len(w.events))
	return nil
}

// checkSchemas reads the OpenAPI document, which comes in protobuf, as clients do that validate.
func checkSchemas(client kubernetes.Interface) error {
	document, err := client.Discovery().OpenAPISchema()
	if err != nil {
		return fmt.Errorf("OpenAPI v2: %w", err)
	}
	schemas, err := openapi.NewOpenAPIData(document)
	if err != nil {
		return fmt.Errorf("OpenAPI v2: %w", err)
	}
	for _, kind := range []schema.GroupVersionKind{
		{Version: "v1", Kind: "Pod"},
		{Group: "apps", Version: "v1", Kind: "Deployment"},
		{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"},
	} {
		if schemas.LookupResource(kind) == nil || len(schemas.GetConsumes(kind, "PATCH")) == 0 {
			return fmt.Errorf("OpenAPI v2 does not say what a %s is, or how it is patched", kind.Kind)
		}
	}
	return nil
}

// served says which optional groups the server has.
func served(client kubernetes.Interface) map[string]bool {
	found := map[string]bool{}
	groups, err := client.Discovery().ServerGroups()
	if err != nil {
		return found
	}
	for _, group := range groups.Groups {
		found[group.Name] = true
	}
	resources, err := client.Discovery().ServerResourcesForGroupVersion("v1")
	if err != nil {
		return found
	}
	for _, resource := range resources.APIResources {
		found[resource.Name] = true
	}
	return found
}
