package standing

import (
	"os"
	"strings"

	"github.com/service-conformance/conformance/internal/lab/process"
	"github.com/service-conformance/conformance/internal/lab/programs"
)

// ShellOptions say what to run in which place of the lab that Up has started.
type ShellOptions struct {
	// Place is a node, a pod, NAMESPACE/POD, or "outside", a client outside of the cluster whose gateway is the first node.
	Place string
	// Command and its arguments; empty means the user's shell.
	Command []string
	// Name and StateDir are those of UpOptions.
	Name, StateDir string
}

// shellEnvironment is the user's, with the programs of the lab, administrators' programs and a kubeconfig that works on the nodes.
func shellEnvironment(r *Running, place string) []string {
	var env []string
	for _, s := range os.Environ() {
		switch name, _, _ := strings.Cut(s, "="); name {
		case "PATH", "KUBECONFIG", process.LabVariable, process.LabVariable + "_PLACE":
		default:
			env = append(env, s)
		}
	}
	if namespace, _, isPod := strings.Cut(place, "/"); isPod {
		env = append(env, searchVariable+"="+programs.SearchList(namespace))
	}
	return append(env, "PATH="+process.BeforeOwnPath(r.Path), "KUBECONFIG="+r.NodesKubeconfig, process.LabVariable+"="+r.Dir, process.LabVariable+"_PLACE="+place)
}

// searchVariable replaces the search list of resolverFile (resolv.conf(5)).
const searchVariable = "LOCALDOMAIN"
