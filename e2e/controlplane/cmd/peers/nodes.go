package main

import (
	"context"
	"fmt"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
)

const nodeCount = 3

// addNodes makes nodes and keeps saying that they are well.
func addNodes(ctx context.Context, client kubernetes.Interface) error {
	for i := range nodeCount {
		node := &core.Node{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("node-%d", i), Labels: map[string]string{"kubernetes.io/hostname": fmt.Sprintf("node-%d", i)},
		}}
		if _, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil && !errors.IsAlreadyExists(err) {
			return fmt.Errorf("node: %w", err)
		}
		// Controllers label and taint it at the same time.
		if err := retry.RetryOnConflict(retry.DefaultRetry, func() error { return heartbeat(ctx, client, node.Name) }); err != nil {
			return fmt.Errorf("status of node: %w", err)
		}
	}
	go func() {
		for ctx.Err() == nil {
			time.Sleep(10 * time.Second)
			for i := range nodeCount {
				// A conflict with the controllers is made good the next time.
				_ = heartbeat(ctx, client, fmt.Sprintf("node-%d", i))
			}
		}
	}()
	return nil
}

func heartbeat(ctx context.Context, client kubernetes.Interface, name string) error {
	node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	room := core.ResourceList{
		core.ResourceCPU: resource.MustParse("32"), core.ResourceMemory: resource.MustParse("64Gi"), core.ResourcePods: resource.MustParse("250"),
	}
	node.Status.Capacity, node.Status.Allocatable = room, room
	since := metav1.Now()
	if len(node.Status.Conditions) > 0 {
		since = node.Status.Conditions[0].LastTransitionTime
	}
	node.Status.Conditions = []core.NodeCondition{{
		Type: core.NodeReady, Status: core.ConditionTrue, Reason: "KubeletReady",
		LastHeartbeatTime: metav1.Now(), LastTransitionTime: since,
	}}
	_, err = client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
	return err
}

// runPods does for pods on nodes what a kubelet does: starts them, ends jobs, lets go of deleted ones.
func runPods(ctx context.Context, client kubernetes.Interface) {
	for ctx.Err() == nil {
		pods, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
		if err != nil {
			time.Sleep(time.Second)
			continue
		}
		for i := range pods.Items {
			runPod(ctx, client, &pods.Items[i])
		}
		events, err := client.CoreV1().Pods("").Watch(ctx, metav1.ListOptions{ResourceVersion: pods.ResourceVersion, AllowWatchBookmarks: true})
		if err != nil {
			time.Sleep(time.Second)
			continue
		}
		for event := range events.ResultChan() {
			if pod, ok := event.Object.(*core.Pod); ok && (event.Type == watch.Added || event.Type == watch.Modified) {
				go runPod(ctx, client, pod)
			}
		}
	}
}

func runPod(ctx context.Context, client kubernetes.Interface, pod *core.Pod) {
	pods := client.CoreV1().Pods(pod.Namespace)
	switch {
	case pod.Spec.NodeName == "":
		return
	case pod.DeletionTimestamp != nil:
		now := int64(0)
		uid := pod.UID
		_ = pods.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &uid}})
		return
	case pod.Status.Phase == core.PodPending:
		pod.Status.Phase = core.PodRunning
	case pod.Status.Phase == core.PodRunning && pod.Spec.RestartPolicy != core.RestartPolicyAlways:
		time.Sleep(500 * time.Millisecond)
		pod.Status.Phase = core.PodSucceeded
	default:
		return
	}
	now := metav1.Now()
	ready := core.ConditionTrue
	if pod.Status.Phase != core.PodRunning {
		ready = core.ConditionFalse
	}
	if pod.Status.StartTime == nil {
		pod.Status.StartTime = &now
	}
	pod.Status.PodIP = "10.1.2.3"
	pod.Status.PodIPs = []core.PodIP{{IP: pod.Status.PodIP}}
	pod.Status.ContainerStatuses = nil
	for _, container := range pod.Spec.Containers {
		status := core.ContainerStatus{Name: container.Name, Image: container.Image, Ready: ready == core.ConditionTrue}
		if ready == core.ConditionTrue {
			status.State.Running = &core.ContainerStateRunning{StartedAt: now}
		} else {
			status.State.Terminated = &core.ContainerStateTerminated{Reason: "Completed", StartedAt: now, FinishedAt: now}
		}
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, status)
	}
	conditions := []core.PodCondition{}
	for _, condition := range pod.Status.Conditions {
		if condition.Type != core.PodReady && condition.Type != core.ContainersReady && condition.Type != core.PodInitialized {
			conditions = append(conditions, condition)
		}
	}
	for _, kind := range []core.PodConditionType{core.PodInitialized, core.ContainersReady, core.PodReady} {
		status := ready
		if kind == core.PodInitialized {
			status = core.ConditionTrue
		}
		conditions = append(conditions, core.PodCondition{Type: kind, Status: status, LastTransitionTime: now})
	}
	pod.Status.Conditions = conditions
	// Whoever changed it meanwhile causes another event.
	_, _ = pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
}
