package main

import (
	"context"
	"fmt"
	"math/rand"

	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
)

// world is what should be there.
type world struct {
	client      kubernetes.Interface
	random      *rand.Rand
	served      map[string]bool
	namespaces  []string
	deployments map[string]*deployment
	sets        map[string]*statefulSet
	events      map[types.UID]string
	jobs        []string
	dying       []string
	chains      []string
	orphans     []string
	count       int
	changes     int
	rounds      int
	recent      []string
}

type deployment struct {
	namespace, name string
	replicas        int32
	image           int
	// images that a ReplicaSet may be left of.
	images map[int]bool
}

type statefulSet struct {
	namespace, name string
	replicas        int32
	image           int
	images          map[int]bool
}

// change makes one change and says which.
func (w *world) change(ctx context.Context) (string, error) {
	w.count++
	actions := []func(context.Context) (string, error){
		w.addDeployment, w.addDeployment, w.scaleDeployment, w.scaleDeployment, w.rollDeployment, w.rollDeployment,
		w.deleteDeployment, w.addSet, w.scaleSet, w.rollSet, w.deleteSet, w.addChain, w.addAutoscaler, w.killPod, w.cycleNamespace,
	}
	if w.served["batch"] {
		actions = append(actions, w.addJob, w.addJob)
	}
	what, err := actions[w.random.Intn(len(actions))](ctx)
	w.recent = append(w.recent, what)
	if len(w.recent) > 8 {
		w.recent = w.recent[1:]
	}
	return what, err
}

func (w *world) addNamespace(ctx context.Context) error {
	w.count++
	name := fmt.Sprintf("space-%d", w.count)
	_, err := w.client.CoreV1().Namespaces().Create(ctx, &core.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	w.namespaces = append(w.namespaces, name)
	return err
}

// cycleNamespace takes one away with all that is in it, and makes another.
func (w *world) cycleNamespace(ctx context.Context) (string, error) {
	if len(w.namespaces) < 2 {
		return "add namespace", w.addNamespace(ctx)
	}
	name := w.namespaces[0]
	w.namespaces = w.namespaces[1:]
	for key, one := range w.deployments {
		if one.namespace == name {
			delete(w.deployments, key)
		}
	}
	for key, one := range w.sets {
		if one.namespace == name {
			delete(w.sets, key)
		}
	}
	keep := []string{}
	for _, job := range w.jobs {
		if space, _ := split(job); space != name {
			keep = append(keep, job)
		}
	}
	w.jobs = keep
	w.dying = append(w.dying, name)
	return "delete namespace " + name, w.client.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{})
}

func (w *world) namespace() string { return w.namespaces[w.random.Intn(len(w.namespaces))] }

func template(app string, image int) core.PodTemplateSpec {
	return core.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}},
		Spec: core.PodSpec{Containers: []core.Container{{
			Name: "main", Image: fmt.Sprintf("example.com/app:%d", image), Ports: []core.ContainerPort{{ContainerPort: 80}},
		}}},
	}
}

func selector(app string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
}

func (w *world) addDeployment(ctx context.Context) (string, error) {
	if len(w.deployments) >= 6 {
		return w.deleteDeployment(ctx)
	}
	d := &deployment{namespace: w.namespace(), name: fmt.Sprintf("web-%d", w.count), replicas: int32(w.random.Intn(5)), images: map[int]bool{0: true}}
	object := &apps.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: d.name},
		Spec:       apps.DeploymentSpec{Replicas: &d.replicas, Selector: selector(d.name), Template: template(d.name, 0)},
	}
	w.deployments[d.namespace+"/"+d.name] = d
	if _, err := w.client.AppsV1().Deployments(d.namespace).Create(ctx, object, metav1.CreateOptions{}); err != nil {
		return "add deployment", err
	}
	service := &core.Service{
		ObjectMeta: metav1.ObjectMeta{Name: d.name},
		Spec:       core.ServiceSpec{Selector: map[string]string{"app": d.name}, Ports: []core.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(80)}}},
	}
	_, err := w.client.CoreV1().Services(d.namespace).Create(ctx, service, metav1.CreateOptions{})
	return "add deployment " + d.name, err
}

func pick[T any](w *world, all map[string]*T) (string, *T) {
	keys := sortedKeys(all)
	if len(keys) == 0 {
		return "", nil
	}
	key := keys[w.random.Intn(len(keys))]
	return key, all[key]
}

func (w *world) scaleDeployment(ctx context.Context) (string, error) {
	_, d := pick(w, w.deployments)
	if d == nil {
		return w.addDeployment(ctx)
	}
	d.replicas = int32(w.random.Intn(7))
	api := w.client.AppsV1().Deployments(d.namespace)
	scale, err := api.GetScale(ctx, d.name, metav1.GetOptions{})
	if err != nil {
		return "get scale", err
	}
	scale.Spec.Replicas = d.replicas
	_, err = api.UpdateScale(ctx, d.name, scale, metav1.UpdateOptions{})
	if errors.IsConflict(err) {
		patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, d.replicas)
		_, err = api.Patch(ctx, d.name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	}
	return fmt.Sprintf("scale deployment %s to %d", d.name, d.replicas), err
}

func (w *world) rollDeployment(ctx context.Context) (string, error) {
	_, d := pick(w, w.deployments)
	if d == nil {
		return w.addDeployment(ctx)
	}
	// Back to an earlier image as well: its ReplicaSet is used again.
	d.image = w.random.Intn(4)
	d.images[d.image] = true
	patch := fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"example.com/app:%d"}]}}}}`, d.image)
	_, err := w.client.AppsV1().Deployments(d.namespace).Patch(ctx, d.name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	return fmt.Sprintf("roll deployment %s to %d", d.name, d.image), err
}

func (w *world) deleteDeployment(ctx context.Context) (string, error) {
	key, d := pick(w, w.deployments)
	if d == nil {
		return w.addDeployment(ctx)
	}
	delete(w.deployments, key)
	policy := []metav1.DeletionPropagation{metav1.DeletePropagationForeground, metav1.DeletePropagationBackground}[w.random.Intn(2)]
	return fmt.Sprintf("delete deployment %s (%s)", d.name, policy),
		w.client.AppsV1().Deployments(d.namespace).Delete(ctx, d.name, metav1.DeleteOptions{PropagationPolicy: &policy})
}

func (w *world) addSet(ctx context.Context) (string, error) {
	if len(w.sets) >= 3 {
		return w.deleteSet(ctx)
	}
	if !w.served["persistentvolumeclaims"] {
		return "nothing", nil
	}
	s := &statefulSet{namespace: w.namespace(), name: fmt.Sprintf("db-%d", w.count), replicas: int32(w.random.Intn(4)), images: map[int]bool{0: true}}
	object := &apps.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: s.name},
		Spec:       apps.StatefulSetSpec{Replicas: &s.replicas, ServiceName: s.name, Selector: selector(s.name), Template: template(s.name, 0)},
	}
	w.sets[s.namespace+"/"+s.name] = s
	_, err := w.client.AppsV1().StatefulSets(s.namespace).Create(ctx, object, metav1.CreateOptions{})
	return "add stateful set " + s.name, err
}

func (w *world) changeSet(ctx context.Context, s *statefulSet) error {
	patch := fmt.Sprintf(`{"spec":{"replicas":%d,"template":{"spec":{"containers":[{"name":"main","image":"example.com/app:%d"}]}}}}`, s.replicas, s.image)
	_, err := w.client.AppsV1().StatefulSets(s.namespace).Patch(ctx, s.name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

func (w *world) scaleSet(ctx context.Context) (string, error) {
	_, s := pick(w, w.sets)
	if s == nil {
		return w.addSet(ctx)
	}
	s.replicas = int32(w.random.Intn(5))
	return fmt.Sprintf("scale stateful set %s to %d", s.name, s.replicas), w.changeSet(ctx, s)
}

func (w *world) rollSet(ctx context.Context) (string, error) {
	_, s := pick(w, w.sets)
	if s == nil {
		return w.addSet(ctx)
	}
	s.image = w.random.Intn(3)
	s.images[s.image] = true
	return fmt.Sprintf("roll stateful set %s to %d", s.name, s.image), w.changeSet(ctx, s)
}

func (w *world) deleteSet(ctx context.Context) (string, error) {
	key, s := pick(w, w.sets)
	if s == nil {
		return w.addSet(ctx)
	}
	delete(w.sets, key)
	return "delete stateful set " + s.name, w.client.AppsV1().StatefulSets(s.namespace).Delete(ctx, s.name, metav1.DeleteOptions{})
}

func (w *world) addJob(ctx context.Context) (string, error) {
	name, namespace := fmt.Sprintf("task-%d", w.count), w.namespace()
	completions, parallelism := int32(1+w.random.Intn(3)), int32(2)
	pod := template(name, 0)
	pod.Spec.RestartPolicy = core.RestartPolicyNever
	object := &batch.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       batch.JobSpec{Completions: &completions, Parallelism: &parallelism, Template: pod},
	}
	if w.random.Intn(2) == 0 {
		mode := batch.IndexedCompletion
		object.Spec.CompletionMode = &mode
	}
	w.jobs = append(w.jobs, namespace+"/"+name)
	_, err := w.client.BatchV1().Jobs(namespace).Create(ctx, object, metav1.CreateOptions{})
	return "add job " + name, err
}

// addChain makes objects that own each other and takes the first away: all must go.
func (w *world) addChain(ctx context.Context) (string, error) {
	api := w.client.CoreV1().ConfigMaps(w.namespace())
	var owner, first *core.ConfigMap
	for i := range 4 {
		object := &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("chain-%d-%d", w.count, i)}}
		if owner != nil {
			object.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}}
		}
		made, err := api.Create(ctx, object, metav1.CreateOptions{})
		if err != nil {
			return "add chain", err
		}
		if first == nil {
			first = made
		}
		owner = made
	}
	w.chains = append(w.chains, first.Namespace+"/"+owner.Name)
	policy := []metav1.DeletionPropagation{metav1.DeletePropagationForeground, metav1.DeletePropagationBackground}[w.random.Intn(2)]
	if w.random.Intn(4) == 0 {
		policy = metav1.DeletePropagationOrphan
		w.chains = w.chains[:len(w.chains)-1]
		w.orphans = append(w.orphans, first.Namespace+"/"+owner.Name)
	}
	return fmt.Sprintf("delete chain %s (%s)", first.Name, policy), api.Delete(ctx, first.Name, metav1.DeleteOptions{PropagationPolicy: &policy})
}

// addAutoscaler forces a size by its lower bound: there are no metrics here.
func (w *world) addAutoscaler(ctx context.Context) (string, error) {
	_, d := pick(w, w.deployments)
	if d == nil || d.replicas == 0 {
		return w.addDeployment(ctx)
	}
	bound := d.replicas + 1 + int32(w.random.Intn(2))
	api := w.client.AutoscalingV2().HorizontalPodAutoscalers(d.namespace)
	object := &autoscaling.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", d.name, w.count)},
		Spec: autoscaling.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscaling.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: d.name},
			MinReplicas:    &bound, MaxReplicas: bound + 3,
		},
	}
	if _, err := api.Create(ctx, object, metav1.CreateOptions{}); err != nil {
		return "add autoscaler", err
	}
	what := fmt.Sprintf("autoscale %s to at least %d", d.name, bound)
	err := w.waitFor(ctx, func() (string, error) {
		found, err := w.client.AppsV1().Deployments(d.namespace).Get(ctx, d.name, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		if *found.Spec.Replicas < bound {
			return fmt.Sprintf("%s: %d replicas, not %d", what, *found.Spec.Replicas, bound), nil
		}
		d.replicas = *found.Spec.Replicas
		return "", nil
	})
	if err != nil {
		return what, err
	}
	// It goes again, so that sizes set by hand count.
	return what, api.Delete(ctx, object.Name, metav1.DeleteOptions{})
}

// killPod takes a pod away that has to be replaced.
func (w *world) killPod(ctx context.Context) (string, error) {
	pods, err := w.client.CoreV1().Pods(w.namespace()).List(ctx, metav1.ListOptions{})
	if err != nil || len(pods.Items) == 0 {
		return "kill pod", err
	}
	pod := pods.Items[w.random.Intn(len(pods.Items))]
	err = w.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{})
	if errors.IsNotFound(err) {
		err = nil
	}
	return "kill pod " + pod.Name, err
}
