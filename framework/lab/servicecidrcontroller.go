package lab

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/service-conformance/conformance/framework/wholefile"
)

// serviceCIDRController holds a ServiceCIDR that is being deleted while addresses depend on it.
const serviceCIDRController = "service-cidr-controller"

// startServiceCIDRController runs the controller for this server, and returns once it holds the default ServiceCIDR.
func (s *apiServer) startServiceCIDRController(ctx context.Context) (_ *process, err error) {
	content, err := Kubeconfig(s.client.access)
	if err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(s.home, "controller.kubeconfig")
	if err := wholefile.Write(kubeconfig, content, 0o600); err != nil {
		return nil, err
	}
	p, err := startProcess(controllerManager(s.binaries, kubeconfig, serviceCIDRController, s.home+"-controller.log"))
	if err != nil {
		return nil, err
	}
	if err = s.dir.add(p); err == nil {
		err = s.wait(ctx, func(ctx context.Context) error {
			if !p.alive() {
				return nil // told below
			}
			return s.defaultRangeHeld(ctx)
		})
	}
	if err == nil && !p.alive() {
		err = p.startError()
	}
	if err != nil {
		p.kill()
		s.dir.forget(p)
		return nil, fmt.Errorf("start the controller of ServiceCIDRs: %w", err)
	}
	return p, nil
}

// defaultRangeHeld returns nil once a controller has put its finalizer on the default ServiceCIDR.
func (s *apiServer) defaultRangeHeld(ctx context.Context) error {
	var cidr object
	if err := s.client.get(ctx, serviceCIDRPath+"/kubernetes", &cidr); err != nil {
		return err
	}
	if len(cidr.Metadata.Finalizers) == 0 {
		return errors.New(`nothing holds the ServiceCIDR "kubernetes"`)
	}
	return nil
}

// controllerManager is the command that runs these controllers and no others.
func controllerManager(b *Binaries, kubeconfig, controllers, log string) command {
	return command{
		name: string(ControllerManager), path: b.Path(ControllerManager), log: log,
		args: []string{
			"--kubeconfig=" + kubeconfig,
			"--controllers=" + controllers,
			"--leader-elect=false",
			"--secure-port=0",
			"--kube-api-qps=1000", "--kube-api-burst=2000",
			"--concurrent-service-endpoint-syncs=10", "--concurrent-endpoint-syncs=5", "--mirroring-concurrent-service-endpoint-syncs=5",
			"--v=1",
		},
	}
}
