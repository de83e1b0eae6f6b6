// Package image makes the container image of the agent, without a container engine: one layer that holds nothing but the program. It has no
// shell and no libraries, and runs as an ordinary user, as restricted pod security demands. The same program gives the same bytes.
package image

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// repository is what images are called where nobody says otherwise.
const repository = "conformance-agent"

// source is where the program comes from.
const source = "https://github.com/service-conformance/conformance"

// user is the user and the group that the agent runs as; it has no name.
const user = 65532

// program is the path of the agent in the image.
const program = "conformance"

// epoch is the time of everything in an image.
var epoch = time.Unix(0, 0).UTC()

// Reference is the name of the agent's image of a version of this program. What a tag cannot hold ("+") becomes a hyphen.
func Reference(version string) string {
	tag := strings.Map(func(r rune) rune {
		if r < 0x80 && (r == '_' || r == '.' || r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z') {
			return r
		}
		return '-'
	}, version)
	if tag = strings.TrimLeft(tag, ".-"); tag == "" {
		tag = "devel"
	}
	return repository + ":" + tag[:min(len(tag), 128)]
}

// Fits says why an image of the program would not run, if so.
func Fits(path string) error {
	_, err := inspect(path)
	return err
}

// FromExecutable makes the image of a static program for Linux, for the platform that the program is for. The file is read now, and once more
// when the layer is read without compression; it must stay as it is. The error tells how to build a program that fits.
func FromExecutable(path string) (v1.Image, error) {
	e, err := inspect(path)
	if err != nil {
		return nil, err
	}
	// The layer is needed for its digest, and then to be written: what is compressed is kept.
	layer, err := tarball.LayerFromOpener(e.layer, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
	if err != nil {
		return nil, fmt.Errorf("make a layer of %s: %w", path, err)
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	config := &v1.ConfigFile{
		OS: e.platform.OS, Architecture: e.platform.Architecture, Created: v1.Time{Time: epoch},
		RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{
			Entrypoint: []string{"/" + program, "agent"},
			User:       fmt.Sprintf("%d:%d", user, user),
			WorkingDir: "/",
			Labels: map[string]string{
				"org.opencontainers.image.title":   repository,
				"org.opencontainers.image.version": e.version,
				"org.opencontainers.image.source":  source,
			},
		},
	}
	img, err := mutate.ConfigFile(base, config)
	if err != nil {
		return nil, err
	}
	return mutate.Append(img, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: epoch}, CreatedBy: "conformance image build"}})
}

// FromExecutables makes an image of each program, in the order of their platforms. Two for one platform are an error.
func FromExecutables(paths []string) ([]v1.Image, error) {
	seen, byPlatform := map[string]string{}, map[string]v1.Image{}
	var platforms []string
	for _, path := range paths {
		img, err := FromExecutable(path)
		if err != nil {
			return nil, err
		}
		platform, err := Platform(img)
		if err != nil {
			return nil, err
		}
		if other := seen[platform]; other != "" {
			return nil, fmt.Errorf("%s and %s are both for %s; name one of them", other, path, platform)
		}
		seen[platform], byPlatform[platform] = path, img
		platforms = append(platforms, platform)
	}
	slices.Sort(platforms)
	images := make([]v1.Image, len(platforms))
	for i, p := range platforms {
		images[i] = byPlatform[p]
	}
	return images, nil
}

// Platform says what an image is for, for example linux/amd64.
func Platform(img v1.Image) (string, error) {
	config, err := img.ConfigFile()
	if err != nil {
		return "", err
	}
	return config.Platform().String(), nil
}

// Push uploads the images, which are for different platforms, to the registry that the reference names, with the credentials that `docker
// login` has left. It returns the reference by digest.
func Push(ctx context.Context, reference string, images []v1.Image) (string, error) {
	ref, err := name.ParseReference(reference)
	if err != nil {
		return "", err
	}
	var digest v1.Hash
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	if len(images) == 1 {
		if digest, err = images[0].Digest(); err == nil {
			err = remote.Write(ref, images[0], options...)
		}
	} else {
		var platforms v1.ImageIndex
		if platforms, err = index(images); err == nil {
			digest, err = platforms.Digest()
		}
		if err == nil {
			err = remote.WriteIndex(ref, platforms, options...)
		}
	}
	if err != nil {
		return "", fmt.Errorf("push %s: %w", reference, err)
	}
	return ref.Context().Digest(digest.String()).Name(), nil
}

// index joins images of different platforms.
func index(images []v1.Image) (v1.ImageIndex, error) {
	adds := make([]mutate.IndexAddendum, len(images))
	for i, img := range images {
		config, err := img.ConfigFile()
		if err != nil {
			return nil, err
		}
		adds[i] = mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: config.Platform()}}
	}
	return mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), adds...), nil
}

// layer returns the tar archive that holds the program.
func (e *executable) layer() (io.ReadCloser, error) {
	file, err := os.Open(e.path)
	if err != nil {
		return nil, err
	}
	var header bytes.Buffer
	err = tar.NewWriter(&header).WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: program, Mode: 0o755, Uid: user, Gid: user, Size: e.size, ModTime: epoch, Format: tar.FormatUSTAR,
	})
	if err != nil {
		file.Close()
		return nil, err
	}
	// Content is padded to blocks of 512 bytes, and two empty ones end the archive. It is not written by a tar.Writer: that would want a
	// goroutine, or the whole program in memory.
	padding := make([]byte, (512-e.size%512)%512+1024)
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(&header, &exactly{file, e.size}, bytes.NewReader(padding)), file}, nil
}

// exactly reads as many bytes as are left.
type exactly struct {
	from io.Reader
	left int64
}

var errChanged = errors.New("the program was changed while it was read; build the image again")

func (e *exactly) Read(p []byte) (int, error) {
	n, err := e.from.Read(p)
	e.left -= int64(n)
	if e.left < 0 || errors.Is(err, io.EOF) && e.left > 0 {
		return n, errChanged
	}
	return n, err
}
