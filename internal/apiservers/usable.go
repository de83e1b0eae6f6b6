package apiservers

import (
	"context"
	"errors"
	"net/http"
)

const (
	// DefaultServicesPath is the collection of Services in which it is tried whether a server allocates.
	DefaultServicesPath = "/api/v1/namespaces/default/services"
	// KubernetesServicePath is the object whose presence shows that a new server can allocate.
	KubernetesServicePath = DefaultServicesPath + "/kubernetes"
)

// Writable returns nil once the server is ready but for the default roles and priority classes, which a check does not ask for.
func (c *Client) Writable(ctx context.Context) error {
	return c.Get(ctx, "/readyz?exclude=poststarthook/rbac/bootstrap-roles&exclude=poststarthook/scheduling/bootstrap-system-priority-classes", nil)
}

// Usable returns nil once the server is ready and an address could be allocated. The "kubernetes" Service exists then,
// and the default ServiceCIDR is ready where the API has them.
func (c *Client) Usable(ctx context.Context, serviceCIDRAPI bool) error {
	if err := c.Get(ctx, "/readyz", nil); err != nil {
		return err
	}
	if err := c.Get(ctx, KubernetesServicePath, nil); err != nil {
		return err
	}
	if serviceCIDRAPI {
		if err := c.rangeReady(ctx); err != nil {
			return err
		}
	}
	return c.Allocates(ctx)
}

// Allocates returns nil once the server could give a new Service an address of each family. All else that makes a
// server usable is in the storage of one that was restarted. But it begins to allocate some time after it says that it
// is ready (MetaAllocator.run of kube-apiserver).
func (c *Client) Allocates(ctx context.Context) error {
	return c.Call(ctx, http.MethodPost, DefaultServicesPath+"?dryRun=All", "application/json", []byte(trialService), nil)
}

// trialService is accepted as a dry run on a full range, too.
const trialService = `{"apiVersion":"v1","kind":"Service","metadata":{"name":"trial"},"spec":{"ipFamilyPolicy":"PreferDualStack","ports":[{"port":80}]}}`

func (c *Client) rangeReady(ctx context.Context) error {
	var cidr object
	if err := c.Get(ctx, serviceCIDRPath+"/kubernetes", &cidr); err != nil {
		return err
	}
	for _, c := range cidr.Status.Conditions {
		if c.Type == "Ready" && c.Status == "True" {
			return nil
		}
	}
	return errors.New(`the ServiceCIDR "kubernetes" is not ready`)
}

// DefaultRangeHeld returns nil once a controller has put its finalizer on the default ServiceCIDR.
func (c *Client) DefaultRangeHeld(ctx context.Context) error {
	var cidr object
	if err := c.Get(ctx, serviceCIDRPath+"/kubernetes", &cidr); err != nil {
		return err
	}
	if len(cidr.Metadata.Finalizers) == 0 {
		return errors.New(`nothing holds the ServiceCIDR "kubernetes"`)
	}
	return nil
}
