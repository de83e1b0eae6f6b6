package kindcluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// setUpLog is the name of the log of a command that installs what is judged, in a folder of logs.
const setUpLog = "kind-setup.log"

// SetUp has a command of the user's install in the cluster what is judged, such as another proxy or a maker of load balancers. In the line, which /bin/sh runs, {name}
// and {kubeconfig} are filled in; KUBECONFIG names the kubeconfig, too. What the command says goes to a file in the folder logs. An error has its last lines.
func (c *Cluster) SetUp(ctx context.Context, line, logs string) error {
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return err
	}
	path := filepath.Join(logs, setUpLog)
	log, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	err = runLine(ctx, strings.NewReplacer("{name}", c.Name, "{kubeconfig}", c.Kubeconfig).Replace(line), "", c.Kubeconfig, log, nil)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil:
		return nil
	}
	text, _ := os.ReadFile(path) // without one it has said nothing
	return fmt.Errorf("set up cluster %s: %w: %s", c.Name, err, telling(string(text)))
}
