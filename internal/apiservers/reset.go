package apiservers

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

// Reset removes what is left in the ranges: all Services, ServiceCIDRs and IPAddresses but those that the server made
// itself. It returns once both storage and the server's own view of it are clean, and the server can allocate. The
// server makes its own ServiceCIDR again where a check has deleted it.
func (c *Client) Reset(ctx context.Context, serviceCIDRAPI bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, resetTimeout, fmt.Errorf("not clean after %s", resetTimeout))
	defer cancel()
	for {
		left, err := c.leftovers(ctx, "", serviceCIDRAPI)
		if err != nil {
			return fmt.Errorf("look for leftovers: %w", err)
		}
		if len(left) > resetLimit {
			return fmt.Errorf("%d objects are left", len(left))
		}
		if len(left) == 0 {
			// The allocators follow the watch cache: ask that, too.
			if left, err = c.leftovers(ctx, "?resourceVersion=0", serviceCIDRAPI); err != nil {
				return fmt.Errorf("look for leftovers: %w", err)
			}
			if len(left) == 0 {
				if err = c.Allocates(ctx); err == nil {
					return nil
				}
			}
		} else if err := c.delete(ctx, left); err != nil {
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
func (c *Client) leftovers(ctx context.Context, query string, serviceCIDRAPI bool) ([]leftover, error) {
	var left []leftover
	services, err := c.list(ctx, servicePath+query)
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
	if !serviceCIDRAPI {
		return left, nil
	}
	if len(own) == 0 {
		return nil, errors.New(`the "kubernetes" Service is gone`)
	}
	if len(left) > 0 {
		return left, nil
	}
	for path, keep := range map[string][]string{ipAddressPath: own, serviceCIDRPath: {"kubernetes"}} {
		objects, err := c.list(ctx, path+query)
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

func (c *Client) list(ctx context.Context, path string) ([]object, error) {
	var list struct {
		Items []object `json:"items"`
	}
	err := c.Get(ctx, path, &list)
	return list.Items, err
}

// delete removes the objects, several at a time; objects that are gone already are fine.
func (c *Client) delete(ctx context.Context, left []leftover) error {
	queue := make(chan leftover)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var first error
	for range min(resetWorkers, len(left)) {
		wg.Go(func() {
			for o := range queue {
				if err := c.deleteOne(ctx, o); err != nil {
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

func (c *Client) deleteOne(ctx context.Context, o leftover) error {
	if o.finalized {
		err := c.Call(ctx, http.MethodPatch, o.path, "application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`), nil)
		if err != nil && !notFound(err) {
			return err
		}
	}
	if err := c.Call(ctx, http.MethodDelete, o.path, "", nil, nil); err != nil && !notFound(err) {
		return err
	}
	return nil
}
