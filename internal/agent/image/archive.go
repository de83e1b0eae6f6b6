package image

import (
	"archive/tar"
	"bytes"
	"io"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// WriteArchive writes the images, which are for different platforms, as a tar archive under a name and tag. One image makes the format of `docker
// save`, which `docker load`, `kind load image-archive` and `ctr images import` read. Several make an OCI image layout
// (https://github.com/opencontainers/image-spec/blob/v1.1.1/image-layout.md), which containerd reads, and Docker with containerd's image store.
func WriteArchive(w io.Writer, reference string, images []v1.Image) error {
	tag, err := name.NewTag(reference)
	if err != nil {
		return err
	}
	if len(images) == 1 {
		return tarball.Write(tag, images[0], w)
	}
	return writeLayout(w, tag, images)
}

// writeLayout writes an OCI image layout whose index names one index of all platforms.
func writeLayout(w io.Writer, tag name.Tag, images []v1.Image) error {
	archive := &layoutWriter{tar.NewWriter(w)}
	if err := archive.file("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)); err != nil {
		return err
	}
	platforms, err := index(images)
	if err != nil {
		return err
	}
	outer := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), mutate.IndexAddendum{
		Add: platforms,
		Descriptor: v1.Descriptor{Annotations: map[string]string{
			"io.containerd.image.name":          familiar(tag),
			"org.opencontainers.image.ref.name": tag.TagStr(),
		}},
	})
	manifest, err := outer.RawManifest()
	if err != nil {
		return err
	}
	if err := archive.file("index.json", manifest); err != nil {
		return err
	}
	if err := archive.manifest(platforms); err != nil {
		return err
	}
	for _, img := range images {
		if err := archive.image(img); err != nil {
			return err
		}
	}
	return archive.tar.Close()
}

// familiar is a full name as container engines have it: they call Docker's registry by another name than its address.
func familiar(tag name.Tag) string {
	return strings.Replace(tag.Name(), name.DefaultRegistry+"/", "docker.io/", 1)
}

// layoutWriter writes an OCI image layout.
type layoutWriter struct{ tar *tar.Writer }

func (l *layoutWriter) file(path string, content []byte) error {
	if err := l.header(path, int64(len(content))); err != nil {
		return err
	}
	_, err := l.tar.Write(content)
	return err
}

func (l *layoutWriter) header(path string, size int64) error {
	return l.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: path, Mode: 0o644, Size: size, ModTime: epoch, Format: tar.FormatUSTAR})
}

// blob writes what the digest names.
func (l *layoutWriter) blob(digest v1.Hash, size int64, content io.Reader) error {
	if err := l.header("blobs/"+digest.Algorithm+"/"+digest.Hex, size); err != nil {
		return err
	}
	_, err := io.Copy(l.tar, content)
	return err
}

// manifest writes that of an image or of an index.
func (l *layoutWriter) manifest(of interface {
	Digest() (v1.Hash, error)
	RawManifest() ([]byte, error)
}) error {
	digest, err := of.Digest()
	if err != nil {
		return err
	}
	raw, err := of.RawManifest()
	if err != nil {
		return err
	}
	return l.blob(digest, int64(len(raw)), bytes.NewReader(raw))
}

// image writes everything that an image consists of.
func (l *layoutWriter) image(img v1.Image) error {
	if err := l.manifest(img); err != nil {
		return err
	}
	digest, err := img.ConfigName()
	if err != nil {
		return err
	}
	raw, err := img.RawConfigFile()
	if err != nil {
		return err
	}
	if err := l.blob(digest, int64(len(raw)), bytes.NewReader(raw)); err != nil {
		return err
	}
	layers, err := img.Layers()
	if err != nil {
		return err
	}
	for _, layer := range layers {
		if err := l.layer(layer); err != nil {
			return err
		}
	}
	return nil
}

func (l *layoutWriter) layer(layer v1.Layer) error {
	digest, err := layer.Digest()
	if err != nil {
		return err
	}
	size, err := layer.Size()
	if err != nil {
		return err
	}
	content, err := layer.Compressed()
	if err != nil {
		return err
	}
	defer content.Close()
	return l.blob(digest, size, content)
}
