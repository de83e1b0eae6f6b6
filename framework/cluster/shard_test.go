package cluster

import (
	"testing"

	"github.com/service-conformance/conformance/framework/candidate"
)

// TestAgentsOfShardsListenOnOtherPorts looks at ports in the host network of nodes, which the agents of all runs share.
func TestAgentsOfShardsListenOnOtherPorts(t *testing.T) {
	by := map[int]int{}
	for i := 1; i <= 3; i++ {
		c := &Cluster{options: Options{Shard: candidate.Shard{Index: i, Of: 3}}}
		c.hostPort.Store(hostPorts - 10) // anywhere
		for range 2 * hostPorts {
			port := c.nextHostPort()
			if before := by[port]; before != 0 && before != i {
				t.Fatalf("shards %d and %d have port %d", before, i, port)
			}
			if by[port] = i; port < firstHostPort || port >= firstHostPort+hostPorts {
				t.Fatalf("port %d is none of those for agents", port)
			}
		}
	}
	if len(by) != hostPorts {
		t.Errorf("the shards have %d of %d ports", len(by), hostPorts)
	}
}
