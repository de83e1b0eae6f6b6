package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/candidate/apiclient"
)

// NoRunLasts is the age from which a namespace of a run is taken for one that a killed run has left.
const NoRunLasts = 24 * time.Hour

// Connect reads the kubeconfig, or the service account of the pod without one, and asks the server nothing.
func Connect(kubeconfig string) (apiclient.Interface, error) {
	config, err := load(kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.UserAgent = -1, "conformance"
	client, err := apiclient.New(config)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source(kubeconfig), err)
	}
	return client, nil
}

// Cleanup removes what killed runs have left in the cluster. It removes every older namespace with their label, and all
// that is in it. It waits until the namespaces are gone, or the context ends, and returns the names of those that are;
// the error names the others. A run that goes on at the same time loses what it works with, unless it is younger.
func Cleanup(ctx context.Context, client apiclient.Interface, older time.Duration) (removed []string, err error) {
	left, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: candidate.RunLabel})
	if err != nil {
		return nil, fmt.Errorf("list the namespaces of runs: %w", err)
	}
	errs := make([]error, len(left.Items))
	var gone sync.WaitGroup
	for i := range left.Items {
		if time.Since(left.Items[i].CreationTimestamp.Time) >= older {
			gone.Go(func() { errs[i] = removeNamespace(ctx, client, &left.Items[i]) })
		}
	}
	gone.Wait()
	for i, ns := range left.Items {
		switch {
		case errs[i] != nil:
			errs[i] = fmt.Errorf("namespace %s is left: %w%s", ns.Name, errs[i], hindrances(&ns))
		case time.Since(ns.CreationTimestamp.Time) >= older:
			removed = append(removed, ns.Name)
		}
	}
	return removed, errors.Join(errs...)
}

// RemoveRun deletes the namespaces of a run that could not clean up after itself, and does not wait until they are gone. The error names those that it could not delete.
func RemoveRun(ctx context.Context, client apiclient.Interface, id string) error {
	left, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: candidate.RunLabel + "=" + id})
	if err != nil {
		return fmt.Errorf("list the namespaces of the run: %w", err)
	}
	errs := make([]error, len(left.Items))
	var done sync.WaitGroup
	for i, ns := range left.Items {
		done.Go(func() {
			err := client.CoreV1().Namespaces().Delete(ctx, ns.Name, metav1.DeleteOptions{})
			if err == nil {
				err = emptyNamespace(ctx, client, ns.Name)
			}
			if err != nil && !apierrors.IsNotFound(err) {
				errs[i] = fmt.Errorf("namespace %s: %w", ns.Name, err)
			}
		})
	}
	done.Wait()
	return errors.Join(errs...)
}

// removeNamespace deletes the namespace, waits until it is gone, and keeps ns as it was last seen. Its pods go at once, however long their grace period is, and
// Services lose what finalizers checks gave them.
func removeNamespace(ctx context.Context, client apiclient.Interface, ns *corev1.Namespace) error {
	if err := client.CoreV1().Namespaces().Delete(ctx, ns.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete it: %w", err)
	}
	for {
		if err := emptyNamespace(ctx, client, ns.Name); err != nil {
			return err
		}
		now, err := client.CoreV1().Namespaces().Get(ctx, ns.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return fmt.Errorf("look whether it is gone: %w", err)
		}
		*ns = *now
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until it is gone: %w", context.Cause(ctx))
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// hindrances is what the status of a namespace says of why it does not go.
func hindrances(ns *corev1.Namespace) string {
	var said strings.Builder
	for _, c := range ns.Status.Conditions {
		if c.Status == corev1.ConditionTrue {
			fmt.Fprintf(&said, "; %s: %s", c.Type, c.Message)
		}
	}
	return said.String()
}

// emptyNamespace removes what would keep a namespace from going.
func emptyNamespace(ctx context.Context, client apiclient.Interface, name string) error {
	zero := int64(0)
	err := client.CoreV1().Pods(name).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &zero}, metav1.ListOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete its pods: %w", err)
	}
	services, err := client.CoreV1().Services(name).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list its Services: %w", err)
	}
	for _, s := range services.Items {
		if err := releaseService(ctx, client, &s); err != nil {
			return err
		}
	}
	return nil
}

// releaseService takes the finalizers of a Service away that a check has set which is gone.
func releaseService(ctx context.Context, client apiclient.Interface, s *corev1.Service) error {
	if !candidate.FreeOfChecks(s) {
		return nil
	}
	if _, err := client.CoreV1().Services(s.Namespace).Update(ctx, s, metav1.UpdateOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("take the finalizers from its Service %s: %w", s.Name, err)
	}
	return nil
}
