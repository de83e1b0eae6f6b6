package controlplane

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/service-conformance/conformance/internal/lab/process"
	"github.com/service-conformance/conformance/internal/lab/programs"
	"github.com/service-conformance/conformance/internal/wholefile"
)

// ServiceCIDRController holds a ServiceCIDR that is being deleted while addresses depend on it.
const ServiceCIDRController = "service-cidr-controller"

// StartServiceCIDRController runs the controller for this server, and returns once it holds the default ServiceCIDR.
func (s *APIServer) StartServiceCIDRController(ctx context.Context) (*process.Process, error) {
	p, err := s.StartControllers(ServiceCIDRController)
	if err != nil {
		return nil, err
	}
	err = s.wait(ctx, func(ctx context.Context) error {
		if !p.Alive() {
			return nil // told below
		}
		return s.Client.DefaultRangeHeld(ctx)
	})
	if err == nil && !p.Alive() {
		err = p.StartError()
	}
	if err != nil {
		p.Kill()
		s.dir.Forget(p)
		return nil, fmt.Errorf("start the controller of ServiceCIDRs: %w", err)
	}
	return p, nil
}

// StartControllers runs these controllers, joined by commas, for this server.
func (s *APIServer) StartControllers(controllers string) (*process.Process, error) {
	content, err := Kubeconfig(s.Client.Access)
	if err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(s.home, "controller.kubeconfig")
	if err := wholefile.Write(kubeconfig, content, 0o600); err != nil {
		return nil, err
	}
	p, err := process.Start(ControllerManager(s.Binaries, kubeconfig, controllers, s.home+"-controller.log"))
	if err != nil {
		return nil, err
	}
	if err := s.dir.Add(p); err != nil {
		p.Kill()
		return nil, err
	}
	return p, nil
}

// ControllerManager is the command that runs these controllers and no others.
func ControllerManager(b *programs.Binaries, kubeconfig, controllers, log string) process.Command {
	return process.Command{
		Name: string(programs.ControllerManager), Path: b.Path(programs.ControllerManager), Log: log,
		Args: []string{
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
