package lab

import (
	"fmt"

	"github.com/service-conformance/conformance/internal/lab/process"
)

// checkCommands finds commands that cannot be started, before anything is built.
func checkCommands(o *Options) error {
	for _, c := range []struct{ what, command string }{
		{"proxy command", o.Proxy.Command}, {"proxy-ready command", o.Proxy.Ready}, {"node-setup command", o.Proxy.Setup},
		{"node-teardown command", o.Proxy.Teardown}, {"pod-setup command", o.Proxy.PodSetup}, {"pod-teardown command", o.Proxy.PodTeardown},
		{"etcd command", o.Servers.EtcdCommand}, {"kube-apiserver command", o.Servers.APIServerCommand},
	} {
		if err := process.Startable(c.command); err != nil {
			return fmt.Errorf("%s: %w", c.what, err)
		}
	}
	return nil
}
