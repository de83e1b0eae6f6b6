//go:build linux

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// mostWritten is how many Services another writer keeps at a time.
const mostWritten = 12

// otherWriter creates and deletes Services of its own in the cluster that the run judges. The flag --kubeconfig of its command says which: a lab that a run starts
// for itself has no other writers.
func otherWriter(ctx context.Context, run *exec.Cmd, random *rand.Rand) string {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfigOf(run.Args))
	if err != nil {
		return ""
	}
	config.QPS, config.Burst = 100, 100
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return ""
	}
	ns, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "another-writer-"}}, metav1.CreateOptions{})
	if err != nil {
		return "another writer: " + err.Error()
	}
	services := client.CoreV1().Services(ns.Name)
	written, refused := 0, 0
	var kept []string
	defer func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		for _, name := range kept { // not every server removes them with the namespace
			_ = services.Delete(ending, name, metav1.DeleteOptions{})
		}
		_ = client.CoreV1().Namespaces().Delete(ending, ns.Name, metav1.DeleteOptions{})
	}()
	for ctx.Err() == nil {
		svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("s-%d", written+refused)}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
		if random.IntN(3) == 0 {
			svc.Spec.Type = corev1.ServiceTypeNodePort
		}
		if _, err := services.Create(ctx, svc, metav1.CreateOptions{}); err != nil {
			refused++ // a check has filled the range, or the server is away
		} else {
			written++
			kept = append(kept, svc.Name)
		}
		if len(kept) > mostWritten {
			_ = services.Delete(ctx, kept[0], metav1.DeleteOptions{})
			kept = slices.Delete(kept, 0, 1)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(20+random.IntN(80)) * time.Millisecond):
		}
	}
	return fmt.Sprintf("%d Services of another writer, %d refused", written, refused)
}

// kubeconfigOf is the value of --kubeconfig in the arguments of a command; empty if there is none.
func kubeconfigOf(args []string) string {
	for i, arg := range args {
		if value, ok := strings.CutPrefix(arg, "--kubeconfig="); ok {
			return value
		}
		if arg == "--kubeconfig" && i+1 < len(args) {
			return args[i+1]
		}
	}
	return ""
}
