package kindcluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/service-conformance/conformance/internal/processgroup"
	"github.com/service-conformance/conformance/internal/wholefile"
)

// Command is the Provider of a cluster that a command of the user's makes and another one removes. Both are lines of a shell, in which {name} and {service-cidr}
// are filled in. KUBECONFIG in their environment names a file of this cluster's own, so that no tool changes that of the user.
type Command struct {
	// Name of the cluster, which no other has, and its Service range, or two joined by a comma.
	Name, ServiceCIDR string
	// Create makes the cluster, prints a kubeconfig on its standard output, and ends when the cluster is ready. What it says goes to its standard error.
	Create string
	// Teardown removes the cluster, or what there is of it. That there is none must be no error. Empty leaves the cluster.
	Teardown string
	// Folder is where its files are, see NewFolder.
	Folder string

	begun bool
	dir   string // that the commands run in; empty is that of this process
}

var _ Provider = (*Command)(nil)

const (
	// recordSuffix ends the names of the files that tell the next process what a killed one has left.
	recordSuffix = ".command.json"
	// commandLog is the name of the log of the commands in a folder of logs.
	commandLog = "cluster-command.log"
	// teardownWithin bounds a teardown: clouds take their time.
	teardownWithin = 15 * time.Minute
	// endsWithin is how long a command that is interrupted may take to end.
	endsWithin = 2 * time.Second
	// largestKubeconfig bounds what a command prints.
	largestKubeconfig = 1 << 20
)

// CreateByCommand makes a cluster by a command. It returns when all of its nodes are ready, and when fits, which is
// given the path of the kubeconfig, returns nil. If it fails, or the context ends, the teardown is called, and the log
// of the commands is in the folder logs.
func CreateByCommand(ctx context.Context, c Command, logs string, fits func(ctx context.Context, kubeconfig string) error) (*Cluster, error) {
	return create(ctx, &c, c.Name, "", logs, nil, func(ctx context.Context, kubeconfig string) error {
		if err := waitNodes(ctx, kubeconfig); err != nil {
			return err
		}
		return fits(ctx, kubeconfig)
	})
}

// CreateWithConfig implements Provider. It takes no file: the command says it all.
func (c *Command) CreateWithConfig(ctx context.Context, _ string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if err := c.record(); err != nil {
		return "", err
	}
	c.begun = true
	printed := c.file(".stdout")
	out, err := os.OpenFile(printed, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}
	defer os.Remove(printed)
	defer out.Close()
	if err := c.run(ctx, c.Create, out); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", fmt.Errorf("cluster command: %w%s", err, c.said())
	}
	// A file, and no pipe: what the command leaves running may hold it open.
	if _, err := out.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(out, largestKubeconfig+1))
	if err != nil {
		return "", err
	}
	if err := checkKubeconfig(text); err != nil {
		return "", fmt.Errorf("cluster command: it must print a kubeconfig, and nothing else, on its standard output: %w%s", err, c.said())
	}
	kubeconfig := kubeconfigPath(c.Folder, c.Name)
	return kubeconfig, os.WriteFile(kubeconfig, text, 0o600)
}

// checkKubeconfig tells why a text is no kubeconfig that can be used wherever it lies.
func checkKubeconfig(text []byte) error {
	switch {
	case len(text) > largestKubeconfig:
		return errors.New("it printed more than 1 MiB")
	case strings.TrimSpace(string(text)) == "":
		return errors.New("it printed nothing")
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	config, err := clientcmd.Load(text)
	if err != nil || len(config.Clusters) == 0 {
		return fmt.Errorf("it printed something else, which begins with %q", shortened(first))
	}
	if file := relativeFile(config); file != "" {
		return fmt.Errorf("it names the file %s, and where that lies is not known: have the kubeconfig hold what is in it (kubectl config view --raw --flatten)", file)
	}
	_, err = clientcmd.NewDefaultClientConfig(*config, nil).ClientConfig()
	return err
}

// relativeFile is a file that a kubeconfig names and that is found from some folder only.
func relativeFile(config *clientcmdapi.Config) string {
	var files []string
	for _, c := range config.Clusters {
		files = append(files, c.CertificateAuthority)
	}
	for _, u := range config.AuthInfos {
		files = append(files, u.ClientCertificate, u.ClientKey, u.TokenFile)
	}
	for _, f := range files {
		if f != "" && !filepath.IsAbs(f) {
			return f
		}
	}
	return ""
}

// LoadImageArchive implements Provider: no command loads images.
func (c *Command) LoadImageArchive(context.Context, string, ...string) error {
	return fmt.Errorf("cluster %s takes no image archives: name an image that its nodes can pull", c.Name)
}

// ExportLogs implements Provider: it copies what the commands have said.
func (c *Command) ExportLogs(_ context.Context, folder string) error {
	text, err := os.ReadFile(c.file(".log"))
	if err == nil {
		err = os.MkdirAll(folder, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, commandLog), text, 0o644)
	}
	return err
}

// Destroy implements Provider. If it fails, the next start of this program tries again.
func (c *Command) Destroy(ctx context.Context) error {
	if !c.begun || c.Teardown == "" {
		return nil
	}
	if err := c.run(ctx, c.Teardown, nil); err != nil {
		return fmt.Errorf("teardown command `%s`: %w%s", c.ByHand(), cmp.Or(ctx.Err(), err), c.said())
	}
	return os.Remove(c.file(recordSuffix))
}

// ByHand is the teardown as a user calls it; empty if there is none.
func (c *Command) ByHand() string { return c.filled(c.Teardown) }

func (c *Command) filled(line string) string {
	return strings.NewReplacer("{name}", c.Name, "{service-cidr}", c.ServiceCIDR).Replace(line)
}

func (c *Command) file(suffix string) string { return filepath.Join(c.Folder, c.Name+suffix) }

// run runs a line of the user's in a process group of its own. No Ctrl-C reaches that group, and it goes on if this
// process is killed. What it says goes to the log; its standard output, too, if out is nil.
func (c *Command) run(ctx context.Context, line string, out *os.File) error {
	log, err := os.OpenFile(c.file(".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	return runLine(ctx, c.filled(line), c.dir, c.file(".own.kubeconfig"), log, out)
}

// runLine runs a line of a shell for Command.run and setUp, in the folder dir if it is there. What it says goes to the log.
func runLine(ctx context.Context, line, dir, kubeconfig string, log, out *os.File) error {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", line)
	cmd.Stdout, cmd.Stderr = log, log
	if out != nil {
		cmd.Stdout = out
	}
	cmd.Env = slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "CONFORMANCE_SIGN_") }) // the password of a key
	cmd.Env = append(cmd.Env, "KUBECONFIG="+kubeconfig)
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		cmd.Dir = dir
	}
	processgroup.Own(cmd)
	cmd.Cancel, cmd.WaitDelay = func() error { return processgroup.End(cmd.Process) }, endsWithin
	err := cmd.Run()
	if ctx.Err() != nil && cmd.Process != nil {
		_ = processgroup.Kill(cmd.Process) // what has not heeded it
	}
	return err
}

// said ends an error with what the commands have said last.
func (c *Command) said() string {
	text, _ := os.ReadFile(c.file(".log")) // without one they have said nothing
	if last := telling(string(text)); last != "" {
		return ": " + last
	}
	return ""
}

// left is what a process that is killed tells the next one.
type left struct {
	Name        string `json:"name"`
	ServiceCIDR string `json:"serviceCIDR"`
	Teardown    string `json:"teardown"`
	Folder      string `json:"folder"` // that the commands run in
}

// record writes down that there may be a cluster from now on.
func (c *Command) record() error {
	if c.Teardown == "" {
		return nil
	}
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	text, err := json.Marshal(left{c.Name, c.ServiceCIDR, c.Teardown, here})
	if err != nil {
		return err
	}
	return wholefile.Write(c.file(recordSuffix), text, 0o600)
}
