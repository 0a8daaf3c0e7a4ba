// codec writes objects of many kinds with the codecs of Kubernetes: the bytes of their protobuf form,
// what these bytes are in JSON, and the bytes that this JSON becomes. One JSON line for each object;
// the objects are the same in every run.
//
// usage: codec >codec.jsonl
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand"
	"os"
	"reflect"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// The kinds to write: group and version, then kinds.
var kinds = []string{
	"v1 Binding ConfigMap DeleteOptions Endpoints Event LimitRange Namespace Node PersistentVolumeClaim Pod " +
		"ReplicationController ResourceQuota Secret Service ServiceAccount Status",
	"apiextensions.k8s.io/v1 CustomResourceDefinition",
	"apiregistration.k8s.io/v1 APIService",
	"apps/v1 ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet",
	"authentication.k8s.io/v1 SelfSubjectReview TokenRequest TokenReview",
	"authorization.k8s.io/v1 LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview",
	"autoscaling/v1 HorizontalPodAutoscaler Scale",
	"autoscaling/v2 HorizontalPodAutoscaler",
	"batch/v1 CronJob Job",
	"coordination.k8s.io/v1 Lease",
	"discovery.k8s.io/v1 EndpointSlice",
	"events.k8s.io/v1 Event",
	"meta.k8s.io/v1 PartialObjectMetadata",
	"networking.k8s.io/v1 Ingress IngressClass NetworkPolicy",
	"policy/v1 Eviction PodDisruptionBudget",
	"rbac.authorization.k8s.io/v1 ClusterRole ClusterRoleBinding Role RoleBinding",
}

// line is one object.
type line struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Case       string `json:"case"`
	// Protobuf is the object as a client would send it.
	Protobuf []byte `json:"protobuf"`
	// JSON is what a server answers that has read Protobuf.
	JSON json.RawMessage `json:"json"`
	// FromJSON is what JSON becomes in protobuf, where that differs: empty and absent are the same
	// in one of the two forms.
	FromJSON []byte `json:"fromJSON,omitempty"`
}

func main() {
	if len(os.Args) != 1 {
		fmt.Fprintln(os.Stderr, "usage: codec >codec.jsonl")
		os.Exit(2)
	}
	if err := write(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "codec:", err)
		os.Exit(1)
	}
}

func write(out io.Writer) error {
	for _, add := range []func(*runtime.Scheme) error{apiextensions.AddToScheme, apiregistration.AddToScheme, metav1.AddMetaToScheme} {
		if err := add(scheme.Scheme); err != nil {
			return err
		}
	}
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for _, group := range kinds {
		words := strings.Fields(group)
		version, err := schema.ParseGroupVersion(words[0])
		if err != nil {
			return err
		}
		for _, kind := range words[1:] {
			for _, c := range cases(kind) {
				l, err := encode(version.WithKind(kind), c)
				if err != nil {
					return fmt.Errorf("%s %s: %w", words[0], kind, err)
				}
				if err := encoder.Encode(l); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// cases are the ways in which an object of a kind is filled.
func cases(kind string) []filler {
	list := []filler{
		{name: "nothing", chance: 0},
		{name: "everything", chance: 1},
		{name: "empty", chance: 1, empty: true},
	}
	for i := range 3 {
		seed := int64(i)
		for _, letter := range kind {
			seed = seed*31 + int64(letter)
		}
		list = append(list, filler{name: fmt.Sprintf("random %d", i+1), chance: 0.35, random: rand.New(rand.NewSource(seed))})
	}
	return list
}

func encode(gvk schema.GroupVersionKind, f filler) (*line, error) {
	object, err := newObject(gvk)
	if err != nil {
		return nil, err
	}
	f.fill(reflect.ValueOf(object).Elem(), 0)
	object.GetObjectKind().SetGroupVersionKind(gvk)
	l := &line{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Case: f.name}
	binary := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	text := jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, jsonserializer.SerializerOptions{})
	if l.Protobuf, err = runtime.Encode(binary, object); err != nil {
		return nil, err
	}
	read, err := newObject(gvk)
	if err != nil {
		return nil, err
	}
	if _, _, err = binary.Decode(l.Protobuf, &gvk, read); err != nil {
		return nil, err
	}
	read.GetObjectKind().SetGroupVersionKind(gvk)
	if l.JSON, err = runtime.Encode(text, read); err != nil {
		return nil, err
	}
	l.JSON = bytes.TrimSpace(l.JSON)
	again, err := newObject(gvk)
	if err != nil {
		return nil, err
	}
	if _, _, err = text.Decode(l.JSON, &gvk, again); err != nil {
		return nil, err
	}
	again.GetObjectKind().SetGroupVersionKind(gvk)
	if l.FromJSON, err = runtime.Encode(binary, again); err != nil {
		return nil, err
	}
	if bytes.Equal(l.FromJSON, l.Protobuf) {
		l.FromJSON = nil
	}
	return l, nil
}

func newObject(gvk schema.GroupVersionKind) (runtime.Object, error) {
	switch gvk.Kind {
	case "Status":
		return &metav1.Status{}, nil
	case "DeleteOptions":
		return &metav1.DeleteOptions{}, nil
	}
	return scheme.Scheme.New(gvk)
}
