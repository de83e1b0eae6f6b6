package main

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
	"sigs.k8s.io/yaml"

	"github.com/service-conformance/conformance/framework/agent/embedded"
	"github.com/service-conformance/conformance/framework/agent/image"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/cluster"
	"github.com/service-conformance/conformance/framework/kindcluster"
)

// prepareAgent decides on the image of the agent, if checks of traffic are selected and no other image is named. The image holds the agent that this program
// carries, or else this program. A program that cannot be one leaves those checks out, and says why.
func (r *kindRun) prepareAgent() error {
	if !r.traffic {
		return nil
	}
	self, err := embedded.Write(r.dir, runtime.GOARCH) // nodes of kind run on this machine's processors
	if errors.Is(err, embedded.ErrNone) {
		self, err = os.Executable()
	}
	if err != nil {
		return harness("%w", err)
	}
	err = image.Fits(self)
	switch {
	case err != nil && r.agentImage != "":
		fmt.Fprintf(r.out, "no traffic can be sent from outside of the cluster, checks of it do not apply: %v\n", err)
		return nil
	case err != nil:
		fmt.Fprintf(r.out, "no traffic can be sent, checks of it do not apply: %v; or name an image with --agent-image\n", err)
		return nil
	}
	if r.program = self; r.agentImage != "" {
		return nil
	}
	digest, err := digestOf(self)
	if err != nil {
		return harness("%w", err)
	}
	r.agentImage = image.Reference(check.BuildVersion() + "-" + digest)
	r.archived = sync.OnceValues(func() (string, error) {
		archive := filepath.Join(r.dir, "agent.tar")
		agent, err := image.FromExecutable(self)
		if err == nil {
			_, err = writeImage(archive, r.agentImage, []v1.Image{agent})
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

// loadAgent loads the image of the agent into a cluster, unless every node has it.
func (r *kindRun) loadAgent(ctx context.Context, c *kindcluster.Cluster) error {
	if r.archived == nil || c.HasImage(r.agentImage) {
		return nil
	}
	archive, err := r.archived()
	if err != nil {
		return fmt.Errorf("write the image of the agent: %w", err)
	}
	return c.LoadImageArchive(ctx, archive)
}

// startOutside starts the clients outside of a cluster. It returns the file that tells where they are, empty if there are none, and what removes them.
func (r *kindRun) startOutside(ctx context.Context, c made) (file string, remove func()) {
	remove = func() {}
	if r.program == "" {
		return "", remove
	}
	var told cluster.Outside
	o, err := c.StartOutside(ctx, r.program)
	if err == nil {
		remove = func() {
			if err := o.Remove(context.WithoutCancel(ctx)); err != nil {
				fmt.Fprintln(os.Stderr, "conformance: cleaning up:", err)
			}
		}
		told = cluster.Outside{URL: o.URL, Token: o.Token, Gateways: o.Gateways}
	} else {
		fmt.Fprintf(r.out, "no traffic can be sent from outside of the cluster, checks of it are unknown: %v\n", err)
		told = cluster.Outside{Failed: err.Error()}
	}
	text, err := yaml.Marshal(told)
	if err == nil {
		file = filepath.Join(r.dir, c.Name+".outside.yaml")
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		r.broken = errors.Join(r.broken, fmt.Errorf("tell where the client outside of cluster %s is: %w", c.Name, err))
		return "", remove
	}
	return file, remove
}

// fence keeps on the nodes what a run sends to addresses that nobody has. It returns what takes the fence down and says whether it held.
func (r *kindRun) fence(ctx context.Context, i int, c made) (remove func()) {
	ranges, err := parseServiceCIDR(r.cidrs[i])
	var f *kindcluster.Fence
	if err == nil && r.traffic {
		f, err = c.Fence(ctx, ranges)
	}
	if err != nil {
		fmt.Fprintf(r.out, "what is sent to addresses that nobody has may leave the cluster: %v\n", err)
	}
	if f == nil || err != nil {
		return func() {}
	}
	return func() {
		left, err := f.Remove(context.WithoutCancel(ctx))
		if left > 0 {
			fmt.Fprintf(r.out, "%d packets to addresses that nobody has left the cluster\n", left)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "conformance: cleaning up:", err)
		}
	}
}
