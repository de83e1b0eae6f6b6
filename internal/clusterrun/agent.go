package clusterrun

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/kindcluster"
	"github.com/service-conformance/conformance/internal/agent/embedded"
	"github.com/service-conformance/conformance/internal/agent/image"
	"github.com/service-conformance/conformance/internal/wholefile"
)

// agent is the program that clusters of kind have for checks of traffic.
type agent struct {
	program  string                 // static, for the client outside of a cluster; empty if no traffic is sent
	archived func() (string, error) // writes the archive of the image, once, and returns its path; nil if none is loaded
}

// prepare decides on the image of the agent, if checks of traffic are planned and no other image is named. The image holds the agent that this program carries, or else
// this program. A program that cannot be one leaves those checks out, and says why.
func (a *agent) prepare(r *Run) error {
	if !r.Traffic {
		return nil
	}
	self, err := embedded.Write(r.folder.Path, runtime.GOARCH) // nodes of kind run on this machine's processors
	if errors.Is(err, embedded.ErrNone) {
		self, err = os.Executable()
	}
	if err != nil {
		return err
	}
	err = image.Fits(self)
	switch {
	case err != nil && r.AgentImage != "":
		fmt.Fprintf(r.Out, "no traffic can be sent from outside of the cluster, checks of it do not apply: %v\n", err)
		return nil
	case err != nil:
		fmt.Fprintf(r.Out, "no traffic can be sent, checks of it do not apply: %v; or name an image with --agent-image\n", err)
		return nil
	}
	if a.program = self; r.AgentImage != "" {
		return nil
	}
	digest, err := digestOf(self)
	if err != nil {
		return err
	}
	tag := image.Reference(check.BuildVersion() + "-" + digest)
	r.AgentImage = tag
	a.archived = sync.OnceValues(func() (string, error) {
		archive := filepath.Join(r.folder.Path, "agent.tar")
		agent, err := image.FromExecutable(self)
		if err == nil {
			err = wholefile.Stream(archive, 0o644, func(w io.Writer) error { return image.WriteArchive(w, tag, []v1.Image{agent}) })
		}
		return archive, err
	})
	return nil
}

// digestOf begins the SHA-256 digest of a file: an image of that name holds that program and no other.
func digestOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil))[:12], nil
}

// load loads the image into a cluster, unless every node has it.
func (a *agent) load(ctx context.Context, c *kindcluster.Cluster, tag string) error {
	if a.archived == nil || c.HasImage(tag) {
		return nil
	}
	archive, err := a.archived()
	if err != nil {
		return fmt.Errorf("write the image of the agent: %w", err)
	}
	return c.LoadImageArchive(ctx, archive)
}
