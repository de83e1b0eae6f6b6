package kindcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// setUpLog is the name of the log of a command that installs what is judged, in a folder of logs.
	setUpLog = "kind-setup.log"
	// setUpWithin bounds such a command, which may load images.
	setUpWithin = 15 * time.Minute
)

// setUp has a command of the user's install in a cluster what is judged, such as another proxy or a maker of load balancers. What it says goes to a file in the folder
// logs. An error has its last lines.
func setUp(ctx context.Context, line, name, kubeconfig, logs string) error {
	bounded, cancel := context.WithTimeout(ctx, setUpWithin)
	defer cancel()
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return err
	}
	path := filepath.Join(logs, setUpLog)
	log, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	err = runLine(bounded, strings.NewReplacer("{name}", name, "{kubeconfig}", kubeconfig).Replace(line), "", kubeconfig, log, nil)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil:
		return nil
	case errors.Is(bounded.Err(), context.DeadlineExceeded):
		err = fmt.Errorf("it has not ended within %s", setUpWithin)
	}
	text, _ := os.ReadFile(path) // without one it has said nothing
	if last := telling(string(text)); last != "" {
		return fmt.Errorf("set up by `%s`: %w: %s", line, err, last)
	}
	return fmt.Errorf("set up by `%s`: %w", line, err)
}
