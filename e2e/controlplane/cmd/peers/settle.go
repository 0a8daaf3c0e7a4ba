package main

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"time"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func sortedKeys[T any](all map[string]T) []string {
	keys := make([]string, 0, len(all))
	for key := range all {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}

func split(key string) (string, string) {
	namespace, name, _ := strings.Cut(key, "/")
	return namespace, name
}

// waitFor asks until nothing is missing; what is missing at the end is the error.
func (w *world) waitFor(ctx context.Context, missing func() (string, error)) error {
	end := time.Now().Add(settleTime)
	for {
		what, err := missing()
		if err != nil {
			return err
		}
		if what == "" {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("not within %s: %s", settleTime, what)
		}
		time.Sleep(250 * time.Millisecond)
	}
}

// settle waits until everything is as it should be, and stays so.
func (w *world) settle(ctx context.Context) error {
	checks := []func(context.Context) (string, error){w.deploymentsDone, w.setsDone, w.jobsDone, w.namespacesDone, w.chainsDone, w.noStrays}
	for range 2 {
		for _, check := range checks {
			if err := w.waitFor(ctx, func() (string, error) { return check(ctx) }); err != nil {
				return err
			}
		}
		// Controllers that never come to rest show themselves a moment later.
		time.Sleep(500 * time.Millisecond)
	}
	w.dying, w.chains, w.orphans = nil, nil, nil
	return nil
}

func owned(object metav1.Object, uid any) bool {
	owner := metav1.GetControllerOf(object)
	return owner != nil && any(owner.UID) == uid
}

func (w *world) deploymentsDone(ctx context.Context) (string, error) {
	for _, key := range sortedKeys(w.deployments) {
		d := w.deployments[key]
		found, err := w.client.AppsV1().Deployments(d.namespace).Get(ctx, d.name, metav1.GetOptions{})
		if err != nil {
			return "", fmt.Errorf("deployment %s: %w", key, err)
		}
		status := found.Status
		if status.ObservedGeneration != found.Generation || status.Replicas != d.replicas || status.UpdatedReplicas != d.replicas || status.AvailableReplicas != d.replicas {
			return fmt.Sprintf("deployment %s wants %d, has %+v", key, d.replicas, status), nil
		}
		sets, err := w.client.AppsV1().ReplicaSets(d.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return "", err
		}
		count := 0
		for i := range sets.Items {
			if owned(&sets.Items[i], found.UID) {
				count++
			}
		}
		// Rolls that came too soon after each other may never have got a ReplicaSet.
		if count > len(d.images) {
			return "", fmt.Errorf("deployment %s had %d templates, but has %d ReplicaSets", key, len(d.images), count)
		}
		if what, err := w.slicesDone(ctx, d); what != "" || err != nil {
			return what, err
		}
	}
	return "", nil
}

// slicesDone checks that a service leads to all pods.
func (w *world) slicesDone(ctx context.Context, d *deployment) (string, error) {
	slices, err := w.client.DiscoveryV1().EndpointSlices(d.namespace).List(ctx, metav1.ListOptions{LabelSelector: discovery.LabelServiceName + "=" + d.name})
	if err != nil {
		return "", err
	}
	ready := int32(0)
	for _, slice := range slices.Items {
		for _, endpoint := range slice.Endpoints {
			if endpoint.Conditions.Ready != nil && *endpoint.Conditions.Ready {
				ready++
			}
		}
	}
	if ready != d.replicas {
		return fmt.Sprintf("service %s leads to %d pods, not %d", d.name, ready, d.replicas), nil
	}
	return "", nil
}

func (w *world) setsDone(ctx context.Context) (string, error) {
	for _, key := range sortedKeys(w.sets) {
		s := w.sets[key]
		found, err := w.client.AppsV1().StatefulSets(s.namespace).Get(ctx, s.name, metav1.GetOptions{})
		if err != nil {
			return "", fmt.Errorf("stateful set %s: %w", key, err)
		}
		status := found.Status
		if status.ObservedGeneration != found.Generation || status.Replicas != s.replicas || status.ReadyReplicas != s.replicas || status.CurrentRevision != status.UpdateRevision {
			return fmt.Sprintf("stateful set %s wants %d, has %+v", key, s.replicas, status), nil
		}
		revisions, err := w.client.AppsV1().ControllerRevisions(s.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return "", err
		}
		count := 0
		for i := range revisions.Items {
			if owned(&revisions.Items[i], found.UID) {
				count++
			}
		}
		if count > len(s.images) {
			return "", fmt.Errorf("stateful set %s had %d templates, but has %d revisions", key, len(s.images), count)
		}
	}
	return "", nil
}

func (w *world) jobsDone(ctx context.Context) (string, error) {
	for len(w.jobs) > 0 {
		namespace, name := split(w.jobs[0])
		job, err := w.client.BatchV1().Jobs(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return "", fmt.Errorf("job %s: %w", name, err)
		}
		done := false
		for _, condition := range job.Status.Conditions {
			done = done || condition.Type == batch.JobComplete && condition.Status == core.ConditionTrue
		}
		if !done || job.Status.Succeeded != *job.Spec.Completions {
			return fmt.Sprintf("job %s wants %d, has %+v", name, *job.Spec.Completions, job.Status), nil
		}
		w.jobs = w.jobs[1:]
	}
	return "", nil
}

func (w *world) namespacesDone(ctx context.Context) (string, error) {
	for _, name := range w.dying {
		if _, err := w.client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{}); !errors.IsNotFound(err) {
			return fmt.Sprintf("namespace %s is still there (%v)", name, err), nil
		}
	}
	for _, name := range w.namespaces {
		if _, err := w.client.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{}); err != nil {
			return fmt.Sprintf("namespace %s: %v", name, err), nil
		}
		if _, err := w.client.CoreV1().ConfigMaps(name).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{}); err != nil {
			return fmt.Sprintf("namespace %s: %v", name, err), nil
		}
	}
	return "", nil
}

func (w *world) chainsDone(ctx context.Context) (string, error) {
	for _, key := range w.chains {
		namespace, name := split(key)
		if _, err := w.client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{}); !errors.IsNotFound(err) {
			return fmt.Sprintf("%s is still there (%v)", key, err), nil
		}
	}
	for _, key := range w.orphans {
		namespace, name := split(key)
		if _, err := w.client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{}); err != nil && w.lives(namespace) {
			return "", fmt.Errorf("%s should have been left alone: %w", key, err)
		}
	}
	return "", nil
}

func (w *world) lives(namespace string) bool {
	for _, name := range w.namespaces {
		if name == namespace {
			return true
		}
	}
	return false
}

// noStrays checks that what was deleted took with it what it owned, and that all pods run.
func (w *world) noStrays(ctx context.Context) (string, error) {
	sets, err := w.client.AppsV1().ReplicaSets("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	for i := range sets.Items {
		owner := metav1.GetControllerOf(&sets.Items[i])
		if owner == nil || w.deployments[sets.Items[i].Namespace+"/"+owner.Name] == nil {
			return fmt.Sprintf("ReplicaSet %s is left over", sets.Items[i].Name), nil
		}
	}
	pods, err := w.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	wanted := int32(0)
	for _, d := range w.deployments {
		wanted += d.replicas
	}
	for _, s := range w.sets {
		wanted += s.replicas
	}
	running := int32(0)
	for _, pod := range pods.Items {
		if pod.Status.Phase == core.PodSucceeded {
			continue
		}
		if pod.Status.Phase != core.PodRunning || pod.DeletionTimestamp != nil {
			return fmt.Sprintf("pod %s is %s", pod.Name, pod.Status.Phase), nil
		}
		running++
	}
	if running != wanted {
		return fmt.Sprintf("%d pods run, not %d", running, wanted), nil
	}
	return "", nil
}

// noteEvents takes in the events that there are now: those of a namespace go with it.
func (w *world) noteEvents(ctx context.Context) error {
	events, err := w.client.CoreV1().Events("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, event := range events.Items {
		component := event.Source.Component
		if component == "" {
			component = event.ReportingController
		}
		w.events[event.UID] = component + " " + event.Reason
	}
	return nil
}

// checkEvents checks that each of the peers could write what it had to say.
func (w *world) checkEvents() error {
	seen := map[string]int{}
	for _, event := range w.events {
		seen[event]++
	}
	for _, wanted := range []string{
		"deployment-controller ScalingReplicaSet", "replicaset-controller SuccessfulCreate", "default-scheduler Scheduled",
	} {
		if seen[wanted] == 0 {
			return fmt.Errorf("no event of %s; there are %v", wanted, seen)
		}
	}
	return nil
}
