package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/service-conformance/conformance/framework/candidate"
)

// NoRunLasts is the age from which a namespace of a run is taken for one that a killed run has left.
const NoRunLasts = 24 * time.Hour

// Cleanup removes what runs that were killed have left in the cluster: every namespace with their label that is older, and with it all that is in it. It waits until
// the namespaces are gone and returns their names. A run that goes on at the same time loses what it works with, unless it is younger.
func Cleanup(ctx context.Context, kubeconfig string, older time.Duration) (removed []string, err error) {
	config, err := load(kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", kubeconfig, err)
	}
	return cleanup(ctx, client, older)
}

func cleanup(ctx context.Context, client kubernetes.Interface, older time.Duration) (removed []string, err error) {
	left, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: candidate.RunLabel})
	if err != nil {
		return nil, fmt.Errorf("list the namespaces of runs: %w", err)
	}
	errs := make([]error, len(left.Items))
	var gone sync.WaitGroup
	for i := range left.Items {
		if time.Since(left.Items[i].CreationTimestamp.Time) < older {
			continue
		}
		gone.Go(func() { errs[i] = removeNamespace(ctx, client, left.Items[i].Name) })
		removed = append(removed, left.Items[i].Name)
	}
	gone.Wait()
	return removed, errors.Join(errs...)
}

// removeNamespace deletes the namespace and waits until it is gone. Its pods go at once, however long their grace period is, and Services lose what finalizers checks gave them.
func removeNamespace(ctx context.Context, client kubernetes.Interface, name string) error {
	if err := client.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete namespace %s: %w", name, err)
	}
	for {
		if err := emptyNamespace(ctx, client, name); err != nil {
			return err
		}
		if _, err := client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{}); apierrors.IsNotFound(err) {
			return nil
		} else if err != nil {
			return fmt.Errorf("look whether namespace %s is gone: %w", name, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until namespace %s is gone: %w", name, context.Cause(ctx))
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// emptyNamespace removes what would keep a namespace from going.
func emptyNamespace(ctx context.Context, client kubernetes.Interface, name string) error {
	zero := int64(0)
	err := client.CoreV1().Pods(name).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &zero}, metav1.ListOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete the pods of namespace %s: %w", name, err)
	}
	services, err := client.CoreV1().Services(name).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the Services of namespace %s: %w", name, err)
	}
	for _, s := range services.Items {
		if err := releaseService(ctx, client, &s); err != nil {
			return err
		}
	}
	return nil
}

// releaseService takes the finalizers of a Service away: nobody but a check that is gone has set them.
func releaseService(ctx context.Context, client kubernetes.Interface, s *corev1.Service) error {
	if len(s.Finalizers) == 0 {
		return nil
	}
	s.Finalizers = nil
	if _, err := client.CoreV1().Services(s.Namespace).Update(ctx, s, metav1.UpdateOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("take the finalizers from Service %s/%s: %w", s.Namespace, s.Name, err)
	}
	return nil
}
