package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/spf13/cobra"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/internal/agent/embedded"
	"github.com/service-conformance/conformance/internal/agent/image"
	"github.com/service-conformance/conformance/internal/wholefile"
)

func newImage() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "image",
		Short: "container images of this program, and of the agent alone, which runs in the pods of a cluster: build, push",
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newImageBuild(), newImagePush())
	return cmd
}

func newImageBuild() *cobra.Command {
	f := &imageFlags{}
	output, tag := "conformance-agent.tar", image.Reference(check.BuildVersion())
	cmd := &cobra.Command{
		Use:   "build",
		Short: "write an image to an archive; no container engine is needed",
		Long: `Write an image that holds nothing but this program to an archive. It runs as an ordinary user. The program must be a static one for Linux.
--binary names another one, or one for each platform.

--agent takes the agent that this program carries, for each platform that it has one for. The pods of checks of traffic need no more.
Such an image has a tenth of the size.

The image of one platform can be read by docker load,
kind load image-archive and ctr images import. That of several is an OCI image layout, for ctr images import and kind load image-archive.`,
		Example: `  conformance image build --agent --output agent.tar
  kind load image-archive agent.tar`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := name.NewTag(tag); err != nil {
				return usage("--tag: %w", err)
			}
			return f.withImages(func(images []v1.Image, platforms string) error {
				size, err := writeImage(output, tag, images)
				if err != nil {
					return usage("--output: %w", err)
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s for %s: %s, %.1f MB\n", tag, platforms, output, float64(size)/1e6)
				return nil
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&output, "output", output, "file that the archive is written to")
	flags.StringVar(&tag, "tag", tag, "name and tag of the image")
	f.add(cmd)
	return cmd
}

func newImagePush() *cobra.Command {
	f := &imageFlags{}
	cmd := &cobra.Command{
		Use:     "push REFERENCE",
		Short:   "upload an image to a registry, with the credentials that docker login has left",
		Example: "  conformance image push --agent registry.example.com/team/conformance-agent:v1",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("name one image: conformance image push registry.example.com/team/conformance-agent:v1")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := name.NewTag(args[0]); err != nil {
				return usage("%w", err)
			}
			return f.withImages(func(images []v1.Image, platforms string) error {
				pushed, err := image.Push(cmd.Context(), args[0], images)
				if err != nil {
					if e := interrupted(cmd.Context(), err); e != nil {
						return e
					}
					return harness("%w", err)
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s for %s: %s\n", args[0], platforms, pushed)
				return nil
			})
		},
	}
	f.add(cmd)
	return cmd
}

// imageFlags say what an image holds.
type imageFlags struct {
	binaries []string
	agent    bool
}

func (f *imageFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.binaries, "binary", nil,
		"static program for Linux that goes into the image, one for each platform (default this program)")
	cmd.Flags().BoolVar(&f.agent, "agent", false, "the agent alone, which this program carries if it was built by make")
}

// withImages makes the image of each program, and names their platforms. The programs stay while the images are used: a layer is read when it is needed.
func (f *imageFlags) withImages(use func(images []v1.Image, platforms string) error) error {
	if f.agent && len(f.binaries) > 0 {
		return usage("--agent takes the agent that this program carries: leave out --binary")
	}
	programs := f.binaries
	switch {
	case f.agent:
		folder, err := os.MkdirTemp("", "conformance-agent-")
		if err != nil {
			return harness("%w", err)
		}
		defer os.RemoveAll(folder)
		for _, architecture := range embedded.Architectures() {
			path, err := embedded.Write(folder, architecture)
			if err != nil {
				return harness("%w", err)
			}
			programs = append(programs, path)
		}
		if len(programs) == 0 {
			return usage("--agent: %w, or leave out --agent", embedded.ErrNone)
		}
	case len(programs) == 0:
		self, err := os.Executable()
		if err != nil {
			return harness("find this program: %w", err)
		}
		programs = []string{self}
	}
	images, err := image.FromExecutables(programs)
	if err != nil {
		return usage("%w", err)
	}
	platforms := make([]string, len(images))
	for i, img := range images {
		if platforms[i], err = image.Platform(img); err != nil {
			return harness("%w", err)
		}
	}
	return use(images, strings.Join(platforms, ", "))
}

// writeImage writes an archive, whole or not at all, and returns its size in bytes.
func writeImage(path, tag string, images []v1.Image) (int64, error) {
	if err := wholefile.Stream(path, 0o644, func(w io.Writer) error { return image.WriteArchive(w, tag, images) }); err != nil {
		return 0, err
	}
	written, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return written.Size(), nil
}
