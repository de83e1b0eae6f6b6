package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	servicePath     = "/api/v1/services"
	serviceCIDRPath = "/apis/networking.k8s.io/v1/servicecidrs"
	ipAddressPath   = "/apis/networking.k8s.io/v1/ipaddresses"
)

// resetTimeout bounds how long a server may take to forget what a check left; after that a new one is faster.
const resetTimeout = 10 * time.Second

// resetLimit is how many objects are worth deleting: more take longer than a new server.
const resetLimit = 1000

// resetWorkers is how many deletions are sent at a time.
const resetWorkers = 8

// reset removes what is left in the ranges: all Services, ServiceCIDRs and IPAddresses but those that the server made
// itself. It returns once both storage and the server's own view of it are clean, and the server can allocate. The
// server makes its own ServiceCIDR again where a check has deleted it.
func (s *APIServer) reset(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, resetTimeout, fmt.Errorf("not clean after %s", resetTimeout))
	defer cancel()
	for {
		left, err := s.leftovers(ctx, "")
		if err != nil {
			return fmt.Errorf("look for leftovers: %w", err)
		}
		if len(left) > resetLimit {
			return fmt.Errorf("%d objects are left", len(left))
		}
		if len(left) == 0 {
			// The allocators follow the watch cache: ask that, too.
			if left, err = s.leftovers(ctx, "?resourceVersion=0"); err != nil {
				return fmt.Errorf("look for leftovers: %w", err)
			}
			if len(left) == 0 {
				if err = s.allocates(ctx); err == nil {
					return nil
				}
			}
		} else if err := s.delete(ctx, left); err != nil {
			return fmt.Errorf("remove leftovers: %w", err)
		}
		select {
		case <-ctx.Done():
			if len(left) == 0 {
				return fmt.Errorf("try to allocate: %w: %w", context.Cause(ctx), err)
			}
			return fmt.Errorf("%d objects such as %s stay: %w", len(left), left[0].path, context.Cause(ctx))
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// leftover is an object to remove.
type leftover struct {
	path      string
	finalized bool // has finalizers, so deletion alone does not remove it
}

// leftovers lists what does not belong to a new server, Services first: their addresses go with them.
func (s *APIServer) leftovers(ctx context.Context, query string) ([]leftover, error) {
	var left []leftover
	services, err := s.list(ctx, servicePath+query)
	if err != nil {
		return nil, err
	}
	var own []string // addresses of the "kubernetes" Service
	for _, o := range services {
		if o.Metadata.Namespace == "default" && o.Metadata.Name == "kubernetes" {
			own = o.Spec.ClusterIPs
			continue
		}
		left = append(left, leftover{"/api/v1/namespaces/" + o.Metadata.Namespace + "/services/" + o.Metadata.Name, len(o.Metadata.Finalizers) > 0})
	}
	if !s.Version.ServiceCIDRAPI() {
		return left, nil
	}
	if len(own) == 0 {
		return nil, errors.New(`the "kubernetes" Service is gone`)
	}
	if len(left) > 0 {
		return left, nil
	}
	for path, keep := range map[string][]string{ipAddressPath: own, serviceCIDRPath: {"kubernetes"}} {
		objects, err := s.list(ctx, path+query)
		if err != nil {
			return nil, err
		}
		for _, o := range objects {
			if !slices.Contains(keep, o.Metadata.Name) {
				left = append(left, leftover{path + "/" + o.Metadata.Name, len(o.Metadata.Finalizers) > 0})
			}
		}
	}
	return left, nil
}

func (s *APIServer) list(ctx context.Context, path string) ([]object, error) {
	var list struct {
		Items []object `json:"items"`
	}
	err := s.Client.Get(ctx, path, &list)
	return list.Items, err
}

// delete removes the objects, several at a time; objects that are gone already are fine.
func (s *APIServer) delete(ctx context.Context, left []leftover) error {
	queue := make(chan leftover)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var first error
	for range min(resetWorkers, len(left)) {
		wg.Go(func() {
			for o := range queue {
				if err := s.deleteOne(ctx, o); err != nil {
					mu.Lock()
					if first == nil {
						first = err
					}
					mu.Unlock()
				}
			}
		})
	}
	for _, o := range left {
		queue <- o
	}
	close(queue)
	wg.Wait()
	return first
}

func (s *APIServer) deleteOne(ctx context.Context, o leftover) error {
	if o.finalized {
		err := s.Client.Call(ctx, http.MethodPatch, o.path, "application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`), nil)
		if err != nil && !notFound(err) {
			return err
		}
	}
	if err := s.Client.Call(ctx, http.MethodDelete, o.path, "", nil, nil); err != nil && !notFound(err) {
		return err
	}
	return nil
}
